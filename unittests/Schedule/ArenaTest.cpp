//===- ArenaTest.cpp - packing, bound and sweep ---------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Schedule/Arena.h"
#include "SyntheticProgram.h"

#include <gtest/gtest.h>

#include <random>

using namespace weft::schedule;
using weft::test::makeStepProblem;

namespace {

/// A problem written by hand; the test fails if it cannot be read.
ArenaProblem parse(const char *text) {
  weft::rt::Result<ArenaProblem> problem = parseArenaProblem(text);
  EXPECT_TRUE(problem) << problem.error().message;
  return problem ? *problem : ArenaProblem();
}

std::string parseError(const char *text) {
  weft::rt::Result<ArenaProblem> problem = parseArenaProblem(text);
  return problem ? "" : problem.error().message;
}

ArenaProblem randomProblem(std::mt19937_64 &random) {
  ArenaProblem problem;
  problem.alignment = uint64_t(1) << (random() % 8);
  int64_t count = random() % 60, end = 1 + random() % 40;
  for (int64_t i = 0; i < count; ++i) {
    int64_t first = random() % end;
    int64_t last = first + int64_t(random() % end) - (random() % 16 == 0 ? end : 0);
    problem.buffers.push_back({random() % 300, first, last});
  }
  return problem;
}

/// Every pair, without a sweep.
bool hasFault(const ArenaProblem &problem, const ArenaPlan &plan) {
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    const ArenaBuffer &a = problem.buffers[i];
    if (plan.offsets[i] % problem.alignment != 0 ||
        (a.isNeeded() && plan.offsets[i] + a.bytes > plan.bytes)) {
      return true;
    }
    for (size_t j = 0; j < i; ++j) {
      const ArenaBuffer &b = problem.buffers[j];
      bool inTime = a.isNeeded() && b.isNeeded() && a.first <= b.last && b.first <= a.last;
      bool inSpace = plan.offsets[i] < plan.offsets[j] + b.bytes &&
                     plan.offsets[j] < plan.offsets[i] + a.bytes;
      if (inTime && inSpace) {
        return true;
      }
    }
  }
  return false;
}

TEST(Arena, ReadsAndPrintsText) {
  ArenaProblem problem = parse("# two buffers\nalignment 32\n\nbuffer 100 0 3 # first\n"
                               "buffer 7 -2 5\n");
  EXPECT_EQ(toText(problem), "alignment 32\nbuffer 100 0 3\nbuffer 7 -2 5\n");
}

TEST(Arena, RefusesTextThatIsNone) {
  EXPECT_EQ(parseError("buffer 100 0 3\nbuffer 1 2\n"),
            "line 2: expected 'buffer BYTES FIRST LAST' or 'alignment' and a power of two, got "
            "'buffer 1 2'");
  EXPECT_NE(parseError("alignment 48").find("line 1:"), std::string::npos);
  EXPECT_NE(parseError("buffer -1 0 3").find("line 1:"), std::string::npos);
  EXPECT_NE(parseError("buffer 99999999999999999999 0 3").find("line 1:"), std::string::npos);
  EXPECT_NE(parseError("bufer 1 0 3").find("line 1:"), std::string::npos);
}

TEST(Arena, SharesBytesWhenLifetimesDoNotMeet) {
  ArenaProblem problem = parse("buffer 64 0 1\nbuffer 64 2 3\n");
  EXPECT_EQ(packFirstFit(problem).bytes, 64u);
}

TEST(Arena, BothEndsOfALifetimeAreNeeded) {
  ArenaProblem problem = parse("buffer 64 0 2\nbuffer 64 2 3\n");
  EXPECT_EQ(packFirstFit(problem).bytes, 128u);
  EXPECT_EQ(arenaLowerBound(problem), 128u);
}

TEST(Arena, JoinsHolesAndRoundsUp) {
  // Three neighbours are given back in the order middle, last, first; then one takes all.
  ArenaProblem problem = parse("buffer 10 0 5\nbuffer 70 0 3\nbuffer 64 0 4\nbuffer 256 6 6\n");
  ArenaPlan plan = packFirstFit(problem);
  EXPECT_EQ(plan.offsets[3], 0u);
  EXPECT_EQ(plan.bytes, 256u);
}

TEST(Arena, UnneededBuffersTakeNothing) {
  ArenaProblem problem = parse("buffer 64 1 0\nbuffer 0 0 9\nbuffer 64 0 0\n");
  EXPECT_EQ(packFirstFit(problem).bytes, 64u);
  EXPECT_TRUE(checkArena(problem, packFirstFit(problem)).empty());
}

TEST(Arena, SweepNamesTheFault) {
  ArenaProblem problem = parse("buffer 128 0 2\nbuffer 64 1 3\n");
  auto fault = [&](ArenaPlan plan) {
    std::vector<ArenaFault> faults = checkArena(problem, plan);
    return faults.empty() ? "" : toText(faults[0]);
  };
  EXPECT_EQ(fault({{0, 128}, 192}), "");
  EXPECT_EQ(fault({{0, 64}, 192}), "buffer 0 and buffer 1 overlap in space and time");
  EXPECT_EQ(fault({{0, 130}, 256}), "buffer 1 does not begin at a multiple of the alignment");
  EXPECT_EQ(fault({{0, 128}, 191}), "buffer 1 ends beyond the arena");
  EXPECT_EQ(fault({{0}, 192}), "the plan's number of offsets differs from the number of buffers");
}

TEST(Arena, RandomPlansAreCheckedAsByBruteForce) {
  std::mt19937_64 random(1);
  int faulty = 0;
  for (int round = 0; round < 3000; ++round) {
    ArenaProblem problem = randomProblem(random);
    ArenaPlan plan = packFirstFit(problem);
    EXPECT_TRUE(checkArena(problem, plan).empty());
    EXPECT_FALSE(hasFault(problem, plan));
    EXPECT_GE(plan.bytes, arenaLowerBound(problem));
    ArenaPlan best = packArena(problem);
    EXPECT_TRUE(checkArena(problem, best).empty());
    EXPECT_FALSE(hasFault(problem, best));
    EXPECT_LE(best.bytes, plan.bytes);
    ArenaPlan bySize = packBySize(problem, arenaLowerBound(problem), 4);
    EXPECT_FALSE(hasFault(problem, bySize));
    EXPECT_LE(bySize.bytes, packBySize(problem, arenaLowerBound(problem), 0).bytes);
    if (plan.offsets.empty()) {
      continue;
    }
    plan.offsets[random() % plan.offsets.size()] += problem.alignment * (random() % 5);
    plan.bytes -= random() % 2;
    EXPECT_EQ(checkArena(problem, plan).empty(), !hasFault(problem, plan));
    faulty += hasFault(problem, plan);
  }
  EXPECT_GT(faulty, 500);
}

TEST(Arena, TrainingStepsComeNearTheBound) {
  double sum = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    ArenaProblem problem = makeStepProblem(48, seed);
    ArenaPlan plan = packArena(problem);
    EXPECT_TRUE(checkArena(problem, plan).empty());
    double gap = double(plan.bytes) / double(arenaLowerBound(problem)) - 1;
    EXPECT_LT(gap, 0.015) << "seed " << seed;
    sum += gap;
  }
  EXPECT_LT(sum / 20, 0.003);
}

TEST(Arena, ShortLivesComeFromTheOtherEnd) {
  // A saved result after each temporary: mixed, the second temporary fits no hole.
  ArenaProblem problem = parse("buffer 64 0 0\nbuffer 64 0 9\nbuffer 128 1 1\nbuffer 64 1 9\n");
  EXPECT_EQ(packFirstFit(problem).offsets, (std::vector<uint64_t>{64, 0, 128, 64}));
  FirstFitOptions options{1, 256};
  EXPECT_EQ(packFirstFit(problem, options).offsets, (std::vector<uint64_t>{192, 0, 128, 64}));
  options.ceiling = 128; // What does not fit below goes above.
  EXPECT_EQ(packFirstFit(problem, options).offsets, (std::vector<uint64_t>{64, 0, 128, 64}));
}

TEST(Arena, RepairsPutWhatEndsTooHighFirst) {
  // The largest below the two smaller leaves no room for the last one, which meets both of them.
  ArenaProblem problem = parse("buffer 192 0 1\nbuffer 128 1 2\nbuffer 128 3 4\n"
                               "buffer 64 0 0\nbuffer 192 2 3\n");
  EXPECT_EQ(arenaLowerBound(problem), 320u);
  ArenaPlan plan = packBySize(problem, 320, 0), repaired = packBySize(problem, 320, 8);
  EXPECT_GE(plan.bytes, repaired.bytes);
  EXPECT_EQ(repaired.bytes, 320u);
}

TEST(Arena, SameProblemSamePlan) {
  ArenaProblem problem = makeStepProblem(24, 7);
  EXPECT_EQ(packFirstFit(problem).offsets, packFirstFit(problem).offsets);
}

} // namespace
