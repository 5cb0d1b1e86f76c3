//===- ProfileTest.cpp - times of steps and their reports ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "report/Profile.h"
#include "tests/Toy.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace weft::rt;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

namespace {

/// A step whose instruction i takes i + 1 seconds, and that waits a quarter of it in collectives.
void addStep(const Program &program, StepTimes &times, double scale = 1) {
  times.beginStep();
  for (size_t i = 0; i < program.stepBody().size(); ++i) {
    double seconds = double(i + 1) * scale;
    bool waits = program.stepBody()[i].opcode == Opcode::Collective;
    times.record(i, seconds, waits ? seconds / 4 : 0);
  }
  times.endStep();
}

TEST(StepTimes, TheFirstStepIsForgotten) {
  Program program = makeToy(1, 1);
  StepTimes times(program.stepBody().size(), true);
  addStep(program, times, 100);
  EXPECT_EQ(times.steps(), 1);
  EXPECT_EQ(times.seconds(0), 100);
  addStep(program, times);
  addStep(program, times, 3);
  EXPECT_EQ(times.steps(), 2);
  EXPECT_EQ(times.seconds(0), 4);
  EXPECT_EQ(times.least(1), 1.5); // Instruction 1 is a collective.
  EXPECT_EQ(times.waited(1), 2);
  std::vector<float> samples;
  times.appendSamples(1, samples);
  EXPECT_THAT(samples, ElementsAre(1.5F, 4.5F));
}

/// Times of a course follow each other, as they were recorded.
TEST(StepTimes, KeepCoursesOnRequest) {
  StepTimes times(2, false);
  std::vector<InstructionTime> course(2);
  auto runStep = [&] {
    times.beginStep();
    times.record(0, 3, 1);
    times.record(1, 0.5, 0);
    times.endStep();
  };
  runStep();
  EXPECT_EQ(course[0].end, 0);
  times.keepCourse(course);
  runStep();
  EXPECT_GT(course[0].begin, 0);
  EXPECT_EQ(course[0].end - course[0].begin, 3'000'000'000);
  EXPECT_EQ(course[0].waited, 1'000'000'000);
  EXPECT_EQ(course[1].begin, course[0].end);
  EXPECT_EQ(course[1].end - course[1].begin, 500'000'000);
  times.keepCourse({});
  const InstructionTime before = course[0];
  runStep();
  EXPECT_EQ(course[0].begin, before.begin);
}

TEST(StepTimes, GoToAnotherProcessAsBytes) {
  StepTimes times(2, true), copy(2, true);
  times.record(0, 3, 1);
  times.record(1, 5, 0);
  times.endStep();
  copy.assign(times.bytes());
  EXPECT_EQ(copy.steps(), 1);
  EXPECT_EQ(copy.seconds(1), 5);
  EXPECT_EQ(copy.waited(0), 1);
  EXPECT_EQ(copy.least(0), 2);
  std::vector<float> samples;
  copy.appendSamples(1, samples);
  EXPECT_THAT(samples, ElementsAre(5));
}

TEST(StepTimes, KeepsTheLastSamples) {
  StepTimes times(1, true), without(1, false);
  for (size_t step = 0; step < StepTimes::kSamples + 3; ++step) {
    for (StepTimes *each : {&times, &without}) {
      each->beginStep();
      each->record(0, double(step), 0);
      each->endStep();
    }
  }
  std::vector<float> samples;
  times.appendSamples(0, samples);
  ASSERT_EQ(samples.size(), StepTimes::kSamples);
  std::sort(samples.begin(), samples.end());
  EXPECT_EQ(samples.front(), 3);
  EXPECT_EQ(samples.back(), float(StepTimes::kSamples + 2));
  samples.clear();
  without.appendSamples(0, samples);
  EXPECT_TRUE(samples.empty());
}

TEST(Classes, ComeFromTheInstruction) {
  Program program = makeToy(2, 2);
  program.kernels[1].kind = "loss";
  EXPECT_EQ(classOf(program, program.stepBody()[0]), "loss");
  EXPECT_EQ(classOf(program, program.stepBody()[1]), "all-reduce");
  EXPECT_EQ(classOf(program, program.stepBody()[3]), "observe");
  EXPECT_EQ(classOf(program, program.stepBody().back()), "optimizer");
  EXPECT_EQ(classOf(program, program.initBody()[0]), "optimizer");
}

/// Two ranks of a program; the second rank takes three times as long as the first.
class TwoRanks : public testing::Test {
protected:
  TwoRanks() : first(program.stepBody().size(), true), second(program.stepBody().size(), true) {
    program.labels[program.stepBody()[0].label] = "layers.12/table (loss)";
    program.kernels[1].kind = "loss";
    program.kernels[1].detail = "addf";
    program.stepBody()[0].cost = {10, 20, 0.5};
    addStep(program, first);
    addStep(program, second, 3);
  }

  const ProfileEntry &entry(const Profile &profile, const std::string &name) {
    for (const ProfileEntry &entry : profile.entries()) {
      if (entry.name.find(name) != std::string::npos) {
        return entry;
      }
    }
    ADD_FAILURE() << "no " << name;
    return profile.entries().front();
  }

  Program program = makeToy(2, 1);
  StepTimes first, second;
};

TEST_F(TwoRanks, AreAveraged) {
  const StepTimes times[] = {first, second};
  Profile profile(program, times, 1, 5 << 20);
  const ProfileEntry &loss = entry(profile, "toy_gradient");
  EXPECT_EQ(loss.kind, "loss");
  EXPECT_EQ(loss.detail, "addf");
  EXPECT_THAT(loss.places, ElementsAre("layers.*/table (loss)"));
  EXPECT_EQ(loss.times.calls, 1);
  EXPECT_EQ(loss.times.flops, 10);
  EXPECT_EQ(loss.times.bytes, 20);
  EXPECT_EQ(loss.times.predicted, 0.5);
  EXPECT_DOUBLE_EQ(loss.times.busy, 2);
  EXPECT_EQ(loss.least, 1);
  EXPECT_EQ(loss.median, 3);
  const ProfileEntry &sum = entry(profile, "all-reduce sum f64 [] over {data, model}");
  EXPECT_DOUBLE_EQ(sum.times.busy, 3);
  EXPECT_DOUBLE_EQ(sum.times.waited, 1);
  for (size_t i = 1; i < profile.entries().size(); ++i) {
    EXPECT_GE(profile.entries()[i - 1].times.busy, profile.entries()[i].times.busy);
  }
}

TEST_F(TwoRanks, AreToldAsATable) {
  const StepTimes times[] = {first, second};
  std::string table = Profile(program, times, 1, 5 << 20).table();
  EXPECT_THAT(table, HasSubstr("mean of 1 step on 2 ranks:\n"));
  EXPECT_THAT(table, HasSubstr("  loss                      1     500.000 ms    2000.000 ms"));
  EXPECT_THAT(table, HasSubstr("  optimizer                 1              -"));
  EXPECT_THAT(table, HasSubstr("\n  waiting for ranks "));
  EXPECT_THAT(table, HasSubstr("of arenas, as predicted; the process had at most 5.00 MiB\n"));
  const StepTimes alone[] = {first};
  EXPECT_THAT(Profile(program, alone, 1, 5 << 20).table(), Not(HasSubstr("waiting")));
}

TEST_F(TwoRanks, AreToldAsJson) {
  const StepTimes times[] = {first, second};
  Profile profile(program, times, 3, 5 << 20);
  auto json = nlohmann::json::parse(profile.json());
  EXPECT_EQ(json["plan"], program.planHash);
  EXPECT_EQ(json["ranks"], 2);
  EXPECT_EQ(json["threads_per_rank"], 3);
  EXPECT_EQ(json["peak_process_bytes"], 5 << 20);
  EXPECT_EQ(json["steps"], 1);
  EXPECT_EQ(json["entries"].size(), profile.entries().size());
  double sum = 0, classes = 0;
  for (const auto &each : json["entries"]) {
    sum += double(each["seconds"]);
  }
  for (const auto &each : json["classes"]) {
    classes += double(each["seconds"]);
  }
  EXPECT_DOUBLE_EQ(sum, json["step"]["seconds"]);
  EXPECT_DOUBLE_EQ(classes, json["step"]["seconds"]);
  EXPECT_EQ(json["step"]["calls"], program.stepBody().size());
  EXPECT_EQ(json["version"], Profile::kVersion);
}

TEST(Profile, TellsThePeakOfWhatEachMultiplies) {
  Program program = makeToy(1, 1);
  program.peakFlopsPerRank = 100e6;
  program.peakByteFlopsPerRank = 200e6;
  program.matmuls = {kToyBytes, {}};
  program.stepBody().resize(2);
  for (uint32_t number : {0, 1}) {
    program.stepBody()[number].opcode = Opcode::Matmul;
    program.stepBody()[number].target = number;
  }
  StepTimes times(program.stepBody().size(), true);
  addStep(program, times);
  const StepTimes ranks[] = {times};
  auto json = nlohmann::json::parse(Profile(program, ranks, 1, 0).json());
  ASSERT_EQ(json["entries"].size(), 2U);
  for (const auto &each : json["entries"]) {
    bool isOfBytes = each["name"] == targetText(program, program.stepBody()[0]);
    EXPECT_EQ(each["peak_flops_per_rank"], isOfBytes ? 200e6 : 100e6) << each["name"];
  }
}

} // namespace
