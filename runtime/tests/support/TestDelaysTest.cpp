//===- TestDelaysTest.cpp - slow links and shaken threads, for tests ------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "support/TestDelays.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>

using namespace weft::rt;

namespace {

/// Sets a variable of the environment as long as it lives; null removes it.
class Variable {
public:
  Variable(const char *name, const char *value) : name(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name); }

private:
  const char *name;
};

std::string errorWith(const char *name, const char *value) {
  Variable variable(name, value);
  Result<TestDelays> delays = TestDelays::read();
  return delays ? "" : delays.error().message;
}

double secondsOf(CollectiveKind kind, size_t members) {
  TestDelays delays = {.latencySeconds = 1, .bytesPerSecond = 100};
  Collective collective = {.kind = kind, .type = ElementType::F32, .shape = {10, 20}};
  return std::chrono::duration<double>(delays.ofLink(collective, members)).count();
}

TEST(TestDelays, AreNoneByDefault) {
  Result<TestDelays> delays = TestDelays::read();
  ASSERT_TRUE(delays);
  EXPECT_EQ(delays->ofLink({.shape = {1000}}, 8).count(), 0);
  EXPECT_EQ(Shaker(*delays, 0, 0).next().count(), 0);
}

TEST(TestDelays, ComeFromTheEnvironment) {
  Variable link("WEFT_TEST_LINK", "0.001,1e6"), shake("WEFT_TEST_SHAKE", "17,0.25");
  Result<TestDelays> delays = TestDelays::read();
  ASSERT_TRUE(delays);
  EXPECT_EQ(delays->latencySeconds, 0.001);
  EXPECT_EQ(delays->bytesPerSecond, 1e6);
  EXPECT_EQ(delays->seed, 17u);
  EXPECT_EQ(delays->shakeSeconds, 0.25);
}

TEST(TestDelays, AreRefusedIfTheyAreNone) {
  for (const char *wrong :
       {"0.1", "0.1,", ",5", "0.1,0", "-1,5", "nan,5", "11,5", "0.1,5x", "1,2,3"}) {
    EXPECT_EQ(errorWith("WEFT_TEST_LINK", wrong),
              std::string("WEFT_TEST_LINK is '") + wrong +
                  "', expected SECONDS,BYTES_PER_SECOND, at most 10 and at least 1");
  }
  for (const char *wrong : {"1", "1,", "x,0.1", "1.5,0.1", "-1,0.1", "1,-0.1", "1,inf", "1,10.5"}) {
    EXPECT_EQ(errorWith("WEFT_TEST_SHAKE", wrong),
              std::string("WEFT_TEST_SHAKE is '") + wrong +
                  "', expected SEED,SECONDS, a whole number and at most 10");
  }
}

TEST(TestDelays, OfLinksAreThoseOfARing) {
  // 200 elements of 4 bytes are 800 bytes, 8 seconds.
  EXPECT_DOUBLE_EQ(secondsOf(CollectiveKind::AllReduce, 4), 6 + 1.5 * 8);
  EXPECT_DOUBLE_EQ(secondsOf(CollectiveKind::ReduceScatter, 4), 3 + 0.75 * 8);
  EXPECT_DOUBLE_EQ(secondsOf(CollectiveKind::AllToAll, 4), 3 + 0.75 * 8);
  EXPECT_DOUBLE_EQ(secondsOf(CollectiveKind::AllGather, 4), 3 + 3 * 8);
  EXPECT_DOUBLE_EQ(secondsOf(CollectiveKind::Permute, 4), 1 + 8);
  EXPECT_DOUBLE_EQ(secondsOf(CollectiveKind::Transfer, 2), 1 + 8);
  EXPECT_EQ(secondsOf(CollectiveKind::AllReduce, 1), 0);
}

TEST(TestDelays, ShakesDifferByRankThreadAndSeed) {
  TestDelays delays = {.seed = 3, .shakeSeconds = 0.5};
  auto drawn = [](const TestDelays &delays, int64_t rank, uint64_t thread) {
    Shaker shaker(delays, rank, thread);
    std::vector<int64_t> times;
    for (int i = 0; i < 100; ++i) {
      times.push_back(shaker.next().count());
    }
    return times;
  };
  std::vector<int64_t> times = drawn(delays, 0, 0);
  EXPECT_EQ(times, drawn(delays, 0, 0));
  TestDelays other = delays;
  other.seed = 4;
  EXPECT_NE(times, drawn(delays, 0, 1));
  EXPECT_NE(times, drawn(delays, 1, 0));
  EXPECT_NE(times, drawn(other, 0, 0));
  int zeros = 0;
  for (int64_t time : times) {
    zeros += time == 0;
    EXPECT_TRUE(0 <= time && time < 500'000'000);
  }
  EXPECT_TRUE(25 < zeros && zeros < 75) << zeros;
}

TEST(TestDelays, SleepsEndWhenTheRunStops) {
  auto begin = std::chrono::steady_clock::now();
  int asked = 0;
  sleepFor(std::chrono::seconds(1000), [&] { return ++asked > 2; });
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(100));
  EXPECT_EQ(asked, 3);
}

} // namespace
