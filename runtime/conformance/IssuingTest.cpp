//===- IssuingTest.cpp - collectives beside the rank's thread ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "conformance/Conformance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>
#include <thread>

using namespace weft::rt;
using namespace weft::rt::conformance;
using testing::ContainsRegex;
using testing::HasSubstr;

namespace {

/// The timeout of tests that compute for longer than that, and a time in which partners are late
/// for sure.
constexpr std::chrono::milliseconds kPatience(2000), kComputation(3000);

void sleep(std::chrono::microseconds time) { std::this_thread::sleep_for(time); }

TEST(Issuing, GoesOnWhileRanksComputeAtTheirOwnPace) {
  constexpr int64_t kElements = 30000;
  constexpr uint64_t kCollectives = 6;
  std::vector<Axis> mesh = {{"a", 2}, {"b", 2}};
  auto backend = makeBackendUnderTest(4, std::chrono::seconds(60));
  if (!backend) {
    return;
  }
  RunResult run = backend->run([&](Communicator &link) {
    // Of both axes and of all ranks in turn; each reads the result of the one before.
    std::vector<Communicator::Handle> sums;
    for (uint32_t i = 0; i < kCollectives; ++i) {
      std::vector<uint32_t> axes = i % 3 == 2 ? std::vector<uint32_t>{0, 1} : std::vector{i % 3};
      sums.push_back(link.prepare({.type = ElementType::F64, .shape = {kElements}},
                                  groupOver(axes, link.rank(), mesh), {"test", i, "sum"}));
    }
    std::vector<std::vector<double>> values(kCollectives + 1, std::vector<double>(kElements));
    for (uint64_t round = 0; round < 15; ++round) {
      auto draw = [&](uint64_t number) {
        return std::mt19937_64((uint64_t(link.rank()) << 32) + 20 * round + number)();
      };
      values[0].assign(kElements, double(link.rank() + 1));
      for (size_t i = 0; i < kCollectives; ++i) {
        sleep(std::chrono::microseconds(draw(i) % 2000));
        ASSERT_TRUE(link.issue(sums[i], values[i].data(), values[i + 1].data()));
      }
      // One in the middle first, then the last one.
      const size_t middle = draw(10) % kCollectives;
      sleep(std::chrono::microseconds(draw(11) % 5000));
      ASSERT_TRUE(link.wait(sums[middle]));
      ASSERT_TRUE(link.wait(sums.back()));
      // All ranks add up to 10; then each of three sums doubles, doubles and takes four times.
      EXPECT_EQ(values[3].front(), 4 * 10.0);
      EXPECT_EQ(values[6].front(), 16 * 4 * 10.0);
      EXPECT_EQ(values[6].back(), 16 * 4 * 10.0);
    }
  });
  EXPECT_FALSE(run.failure) << run.failure->message;
}

TEST(Issuing, AndRunningInLineKeepTheirOrder) {
  auto backend = makeBackendUnderTest(2, std::chrono::seconds(60));
  if (!backend) {
    return;
  }
  RunResult run = backend->run([&](Communicator &link) {
    auto sumOf = [&](int64_t elements, uint32_t instruction) {
      return link.prepare({.type = ElementType::I32, .shape = {elements}}, allRanks(2),
                          {"test", instruction, "sum"});
    };
    auto large = sumOf(200000, 0), small = sumOf(1, 1);
    std::vector<int32_t> ones(200000, 1), twos(200000);
    for (int round = 0; round < 20; ++round) {
      std::fill(twos.begin(), twos.end(), 0);
      ASSERT_TRUE(link.issue(large, ones.data(), twos.data()));
      // Of the same ranks, and of the other's result.
      int32_t sum = 0;
      ASSERT_TRUE(link.run(small, &twos.back(), &sum));
      EXPECT_EQ(sum, 4);
      EXPECT_EQ(twos.front(), 2);
    }
  });
  EXPECT_FALSE(run.failure) << run.failure->message;
}

TEST(Issuing, MayComeLongBeforeAPartnerThatComputes) {
  auto backend = makeBackendUnderTest(2, kPatience);
  if (!backend) {
    return;
  }
  RunResult run = backend->run([&](Communicator &link) {
    auto sum =
        link.prepare({.type = ElementType::I32, .shape = {1}}, allRanks(2), {"test", 0, "sum"});
    int32_t one = 1, two = 0;
    if (link.rank() == 1) {
      sleep(kComputation);
    }
    ASSERT_TRUE(link.issue(sum, &one, &two));
    if (link.rank() == 0) {
      sleep(kComputation);
    }
    ASSERT_TRUE(link.wait(sum));
    EXPECT_EQ(two, 2);
  });
  EXPECT_FALSE(run.failure) << run.failure->message;
}

TEST(Issuing, NamesARankThatDoesNotCome) {
  auto backend = makeBackendUnderTest(2, kPatience);
  if (!backend) {
    return;
  }
  RunResult run = backend->run([&](Communicator &link) {
    auto sumAt = [&](uint32_t instruction) {
      return link.prepare({.shape = {4}}, allRanks(2), {"step", instruction, "layers.3.mlp"});
    };
    auto first = sumAt(7), second = sumAt(9);
    std::vector<float> values(4), sums(4), more(4);
    ASSERT_TRUE(link.issue(first, values.data(), sums.data()));
    if (link.rank() == 1) { // It computes without an end, and never waits.
      while (!link.stopped()) {
        sleep(std::chrono::milliseconds(10));
      }
      return;
    }
    link.issue(second, values.data(), more.data());
    sleep(std::chrono::milliseconds(100));
    EXPECT_FALSE(link.wait(second));
  });
  ASSERT_TRUE(run.failure);
  EXPECT_THAT(run.failure->message,
              ContainsRegex("rank 0 waited 2 s in all-reduce sum f32 .4. .step instruction 9, "
                            "layers.3.mlp."));
  EXPECT_THAT(run.failure->message, HasSubstr("rank 1 is missing: it last finished all-reduce sum "
                                              "f32 [4] (step instruction 7, layers.3.mlp)"));
}

TEST(Issuing, EndsWhenAnotherRankFails) {
  auto backend = makeBackendUnderTest(3, std::chrono::seconds(60));
  if (!backend) {
    return;
  }
  RunResult run = backend->run([&](Communicator &link) {
    auto sum = link.prepare({.shape = {4}}, allRanks(3), {"step", 0, "sum"});
    std::vector<float> values(4), sums(4);
    if (link.rank() == 2) {
      sleep(std::chrono::milliseconds(100));
      link.fail("rank 2 has had enough");
      return;
    }
    EXPECT_TRUE(link.issue(sum, values.data(), sums.data()));
    EXPECT_FALSE(link.wait(sum));
    EXPECT_FALSE(link.run(sum, values.data(), sums.data()));
  });
  EXPECT_FALSE(run.abandoned);
  ASSERT_TRUE(run.failure);
  EXPECT_EQ(run.failure->message, "rank 2 has had enough");
}

} // namespace
