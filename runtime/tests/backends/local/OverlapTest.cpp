//===- OverlapTest.cpp - computation and collectives at one time ------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Links are delayed, so that a collective lasts a known time.
//
//===----------------------------------------------------------------------===//

#include "backends/local/LocalBackend.h"
#include "execution/HostExecutor.h"
#include "tests/Toy.h"

#include <gtest/gtest.h>
#include <thread>

using namespace weft::rt;

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kDelay(200);

/// Links on which a small all-reduce of two ranks takes `kDelay`.
LocalOptions slowLinks() {
  LocalOptions options;
  options.delays.latencySeconds = std::chrono::duration<double>(kDelay).count() / 2;
  options.delays.bytesPerSecond = 1e15;
  return options;
}

double secondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Computes until `end`.
void computeUntil(Clock::time_point end) {
  while (Clock::now() < end) {
  }
}

TEST(LocalOverlap, ACollectiveIsInFlightWhileItsRankComputes) {
  RunResult run = makeLocalBackend(2, slowLinks())->run([&](Communicator &link) {
    auto sum =
        link.prepare({.type = ElementType::I32, .shape = {1}}, allRanks(2), {"test", 0, "sum"});
    int32_t one = 1, two = 0;
    ASSERT_TRUE(link.run(sum, &one, &two)); // The ranks have come together.
    const Clock::time_point issued = Clock::now();
    ASSERT_TRUE(link.issue(sum, &one, &two));
    // In flight from here to at least `issued + kDelay`.
    computeUntil(issued + kDelay);
    const double waited = link.waitedSeconds();
    ASSERT_TRUE(link.wait(sum));
    EXPECT_EQ(two, 2);
    EXPECT_GE(Clock::now(), issued + kDelay);
    EXPECT_LT(link.waitedSeconds() - waited, std::chrono::duration<double>(kDelay).count() / 2);
  });
  EXPECT_FALSE(run.failure);
}

TEST(LocalOverlap, CollectivesOfOneRankFollowEachOther) {
  RunResult run = makeLocalBackend(2, slowLinks())->run([&](Communicator &link) {
    std::vector<Communicator::Handle> sums;
    std::vector<int32_t> values = {1, 0, 0, 0};
    for (uint32_t i = 0; i < 3; ++i) {
      sums.push_back(
          link.prepare({.type = ElementType::I32, .shape = {1}}, allRanks(2), {"test", i, "sum"}));
    }
    const Clock::time_point issued = Clock::now();
    for (size_t i = 0; i < 3; ++i) {
      ASSERT_TRUE(link.issue(sums[i], &values[i], &values[i + 1]));
    }
    EXPECT_LT(secondsSince(issued), std::chrono::duration<double>(kDelay).count());
    ASSERT_TRUE(link.wait(sums[2]));
    EXPECT_GE(Clock::now(), issued + 3 * kDelay);
    EXPECT_EQ(values[3], 8);
  });
  EXPECT_FALSE(run.failure);
}

TEST(LocalOverlap, CountsTheThreadThatMovesBytes) {
  constexpr int64_t kElements = 1 << 23;
  RunResult run = makeLocalBackend(2, {})->run([&](Communicator &link) {
    auto sum = link.prepare({.shape = {kElements}}, allRanks(2), {"test", 0, "sum"});
    std::vector<float> values(kElements), sums(kElements);
    auto agreed =
        link.prepare({.type = ElementType::I32, .shape = {1}}, allRanks(2), {"test", 1, "go on"});
    int32_t isMissed = 1;
    for (int round = 0; round < 100 && isMissed > 0; ++round) {
      EXPECT_EQ(link.busyThreads(), 0);
      ASSERT_TRUE(link.issue(sum, values.data(), sums.data()));
      const Clock::time_point end = Clock::now() + std::chrono::milliseconds(20);
      int32_t own = 1;
      while (own > 0 && Clock::now() < end) {
        own = link.busyThreads() == 0;
      }
      ASSERT_TRUE(link.wait(sum));
      ASSERT_TRUE(link.run(agreed, &own, &isMissed));
    }
    EXPECT_EQ(isMissed, 0);
  });
  EXPECT_FALSE(run.failure);
}

TEST(LocalOverlap, OfADelayEndsWhenARankFails) {
  LocalOptions options = slowLinks();
  options.delays.latencySeconds = 10;
  const Clock::time_point begin = Clock::now();
  RunResult run = makeLocalBackend(2, options)->run([&](Communicator &link) {
    auto sum =
        link.prepare({.type = ElementType::I32, .shape = {1}}, allRanks(2), {"test", 0, "sum"});
    int32_t one = 1, two = 0;
    link.issue(sum, &one, &two);
    if (link.rank() == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      link.fail("rank 1 has had enough");
    }
    EXPECT_FALSE(link.wait(sum));
  });
  EXPECT_FALSE(run.abandoned);
  ASSERT_TRUE(run.failure);
  EXPECT_EQ(run.failure->message, "rank 1 has had enough");
  EXPECT_LT(secondsSince(begin), 5);
}

/// Ignores what the program observes.
class Blind : public Observer {
public:
  bool wants(int64_t, uint32_t) override { return false; }
  void observe(int64_t, uint32_t, const void *) override {}
};

/// The weights after two steps on two ranks, and the seconds of the second.
std::pair<std::vector<char>, double> weightsOf(bool isInLine, const TestDelays &delays) {
  Program program = makeToy(2, 1);
  std::vector<char> weights;
  double seconds = 0;
  Blind observer;
  LocalOptions options;
  options.delays = delays;
  RunResult run = makeLocalBackend(2, options)->run([&](Communicator &link) {
    HostExecutor executor(program, kToyKernels, link.rank(), 2);
    if (isInLine) {
      executor.keepInLine();
    }
    executor.shake(delays);
    ASSERT_TRUE(executor.prepare(link, observer));
    ASSERT_EQ(executor.runInit(), Outcome::Done);
    ASSERT_EQ(executor.runStep(), Outcome::Done);
    const Clock::time_point begin = Clock::now();
    ASSERT_EQ(executor.runStep(), Outcome::Done);
    if (link.rank() == 0) {
      seconds = secondsSince(begin);
      BufferView view = executor.view(0);
      auto *data = static_cast<const char *>(view.data());
      weights.assign(data, data + program.buffers[0].bytes);
    }
  });
  EXPECT_FALSE(run.failure);
  return {weights, seconds};
}

TEST(LocalOverlap, ChangesNoBitInAnyOrderOfThreads) {
  auto expected = weightsOf(/*isInLine=*/true, {}).first;
  EXPECT_FALSE(expected.empty());
  for (uint64_t seed = 0; seed < 20; ++seed) {
    TestDelays delays = {.seed = seed, .shakeSeconds = 0.003};
    EXPECT_EQ(weightsOf(/*isInLine=*/false, delays).first, expected) << "seed " << seed;
  }
}

} // namespace
