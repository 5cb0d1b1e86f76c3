//===- ClassesTest.cpp - programs of several rank classes -----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "program/OwnedTensors.h"
#include "tests/ErrorOf.h"
#include "tests/Toy.h"

#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace weft::rt;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

/// Returns the fault of two rank classes after `change` has changed them.
std::string faultAfter(const std::function<void(Programs &)> &change) {
  Programs programs = makeToyClasses(2);
  change(programs);
  return errorOf(checkWellFormed(programs));
}

/// The same for the first collective across classes of the second class.
std::string faultOf(const std::function<void(Collective &)> &change) {
  return faultAfter([&](Programs &programs) {
    for (Collective &collective : programs[1].collectives) {
      if (collective.isAcrossClasses()) {
        return change(collective);
      }
    }
  });
}

TEST(RankClasses, AreWrittenAndRead) {
  Programs programs = makeToyClasses(2);
  Result<Programs> read = deserialize(serialize(programs));
  ASSERT_EQ(errorOf(read), "");
  ASSERT_EQ(read->size(), 2u);
  EXPECT_EQ(serialize(*read), serialize(programs));
  EXPECT_THAT(toText((*read)[1]),
              HasSubstr("all-reduce sum f64 [] number 1 across classes [0, 1]"));
}

TEST(RankClasses, FollowOneAnother) {
  Programs programs = makeToyClasses(3);
  const Program &second = programs[1];
  EXPECT_EQ(second.rankCount(), 6);
  EXPECT_EQ(second.ranks().first, 3);
  EXPECT_EQ(second.ranks().count, 3);
  EXPECT_THAT(second.coordinatesOf(4), ElementsAre(0, 1));
  EXPECT_EQ(&programOf(programs, 2), &programs[0]);
  EXPECT_EQ(&programOf(programs, 3), &programs[1]);
  EXPECT_THAT(second.classGroup().ranks, ElementsAre(3, 4, 5));
  EXPECT_THAT(second.groupOf(4, {.axes = {1}}).ranks, ElementsAre(3, 4, 5));
  EXPECT_THAT(second.groupOf(4, {.classes = {0, 1}}).ranks, ElementsAre(1, 4));
  EXPECT_EQ(second.groupOf(4, {.classes = {0, 1}}).number, kPairs);
}

TEST(RankClasses, OwnEachTensorOnce) {
  Programs programs = makeToyClasses(1);
  std::vector<OwnedTensor> saved = savedTensorsOf(programs);
  ASSERT_EQ(saved.size(), 4u);
  EXPECT_EQ(saved[1].tensor->name, "second");
  EXPECT_EQ(saved[1].owner, &programs[1]);
  EXPECT_EQ(saved[2].tensor->name, "momentum/table");
  programs[1].parameters[0].name = "table"; // Now both have it.
  EXPECT_EQ(savedTensorsOf(programs).size(), 3u);
  EXPECT_EQ(savedTensorsOf(programs)[0].owner, &programs[0]);
}

TEST(RankClasses, MustBeNumberedAndOfOneSize) {
  EXPECT_EQ(errorOf(checkWellFormed(Programs())), "there is no program");
  EXPECT_EQ(faultAfter([](Programs &all) { all.pop_back(); }),
            "program 0 of 1 is for rank class 0 of 2");
  EXPECT_EQ(faultAfter([](Programs &all) { std::swap(all[0], all[1]); }),
            "program 0 of 2 is for rank class 1 of 2");
  EXPECT_EQ(faultAfter([](Programs &all) { all[1].rankClass = 2; }),
            "rank class 1: the program is for rank class 2 of 2");
  EXPECT_EQ(faultAfter([](Programs &all) { all[1] = makeToyClasses(4)[1]; }),
            "rank class 1 has 4 ranks, expected as many as class 0, 2");
  EXPECT_EQ(faultAfter([](Programs &all) { all[0].rankClasses = all[1].rankClasses = 1 << 24; }),
            "rank class 0: 16777216 rank classes have more than 16777216 ranks");
}

TEST(RankClasses, MustBeOfOneRun) {
  auto different = [](const std::function<void(Program &)> &change) {
    return faultAfter([&](Programs &all) { change(all[1]); });
  };
  EXPECT_EQ(different([](Program &one) { one.modelName = "other"; }),
            "rank classes 0 and 1 have different models");
  EXPECT_EQ(different([](Program &one) { one.planHash = "other"; }),
            "rank classes 0 and 1 have different plans");
  EXPECT_EQ(different([](Program &one) { one.vocabulary = 257; }),
            "rank classes 0 and 1 have different batches");
  EXPECT_EQ(different([](Program &one) { one.defaultSeed = 8; }),
            "rank classes 0 and 1 have different default options");
  EXPECT_EQ(different([](Program &one) { one.kernels[4].name = "other"; }),
            "rank classes 0 and 1 have different kernels");
  EXPECT_EQ(different([](Program &one) { one.evaluate.clear(); }),
            "rank classes 0 and 1 have different evaluations");
}

TEST(RankClasses, MustAgreeTogether) {
  EXPECT_EQ(faultAfter([](Programs &all) {
              std::erase_if(all[1].stepBody(), [](const Instruction &one) {
                return one.opcode == Opcode::Agree || one.opcode == Opcode::Observe;
              });
            }),
            "rank class 1 has 0 agreements to go on in step, class 0 has 1");
}

TEST(RankClasses, FirstObservesWhatItReports) {
  EXPECT_EQ(faultAfter([](Programs &all) {
              std::erase_if(all[0].stepBody(), [&](const Instruction &one) {
                return one.opcode == Opcode::Observe &&
                       all[0].observations[one.target].name == "loss";
              });
            }),
            "rank class 1 observes 'loss' in step, class 0, which reports it, does not");
}

TEST(CollectivesAcrossClasses, MustBeTheSameInAll) {
  EXPECT_EQ(faultOf([](Collective &one) { one.reduction = ReductionKind::Max; }),
            "rank classes 0 and 1 have different collectives of number 1");
  EXPECT_EQ(faultOf([](Collective &one) { one.number = 9; }),
            "rank class 1 lacks collective number 1, which class 0 has");
  EXPECT_EQ(faultOf([](Collective &one) { one.number = 2; }),
            "rank class 1 has two collectives of number 2");
}

TEST(CollectivesAcrossClasses, MustNameClasses) {
  EXPECT_THAT(faultOf([](Collective &one) { one.axes = {1}; }),
              HasSubstr(" is both over mesh axes and across rank classes"));
  EXPECT_THAT(faultOf([](Collective &one) { one.classes = {0, 2}; }),
              HasSubstr(" names rank class 2 of 2"));
  EXPECT_THAT(faultOf([](Collective &one) { one.classes = {1, 1}; }),
              HasSubstr(" names rank class 1 twice"));
  EXPECT_THAT(faultOf([](Collective &one) { one.classes = {0}; }),
              HasSubstr(" is across other rank classes than 1, that of its program"));
  EXPECT_THAT(faultOf([](Collective &one) { one.classes = {1}; }),
              HasSubstr(" is across 1 rank classes, expected all 2"));
  EXPECT_THAT(faultOf([](Collective &one) { one.classes.clear(); }),
              HasSubstr(" is of one class, but has the number 1 of one across classes"));
}

} // namespace
