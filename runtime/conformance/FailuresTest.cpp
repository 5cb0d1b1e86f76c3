//===- FailuresTest.cpp - failures and disagreements of ranks ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "conformance/Conformance.h"

#include <atomic>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <thread>

using namespace weft::rt;
using namespace weft::rt::conformance;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;

namespace {

using Clock = std::chrono::steady_clock;

/// The timeout of collectives that a rank does not come to; longer than a busy machine delays ranks
/// that do come.
constexpr std::chrono::seconds kPatience(2);
/// A run that fails at once ends within `kSoon`, though its collectives may wait for `kLong`.
constexpr std::chrono::seconds kSoon(30), kLong(60);

const Collective kSum = {.shape = {4}};

const Collective kTransfer = {.kind = CollectiveKind::Transfer, .shape = {4}};

struct Brought {
  Collective collective;
  RankGroup group = allRanks(2);
  uint32_t instruction = 5;
};

/// Rank 0 comes with `first`, rank 1 with `second`; the run must end with a report that `matches`.
void expectReport(const Brought &first, const Brought &second,
                  const testing::Matcher<const std::string &> &matches) {
  auto backend = makeBackendUnderTest(2, kLong);
  if (!backend) {
    return;
  }
  RunResult run = backend->run([&](Communicator &communicator) {
    bool isFirst = communicator.rank() == 0;
    const Brought &own = isFirst ? first : second;
    auto handle = communicator.prepare(own.collective, own.group,
                                       {"step", own.instruction, isFirst ? "mlp" : "attention"});
    std::vector<char> operand(256), result(256);
    EXPECT_FALSE(communicator.run(handle, operand.data(), result.data()));
  });
  EXPECT_FALSE(run.abandoned);
  ASSERT_TRUE(run.failure);
  EXPECT_THAT(run.failure->message, matches);
}

TEST(Mismatch, NamesBothRanksAndWhatTheyBrought) {
  Collective gather = kSum;
  gather.kind = CollectiveKind::AllGather;
  expectReport({kSum}, {gather},
               "ranks 0 and 1 came to the same place with different collectives: rank 0 with "
               "all-reduce sum f32 [4] (step instruction 5, mlp), rank 1 with all-gather f32 [4] "
               "(step instruction 5, attention)");
}

TEST(Mismatch, OfReductionTypeCountAndInstruction) {
  Collective maximum = kSum, wide = kSum, longer = kSum;
  maximum.reduction = ReductionKind::Max;
  wide.type = ElementType::F64;
  longer.shape = {5};
  expectReport({kSum}, {maximum}, HasSubstr("rank 1 with all-reduce max f32 [4]"));
  expectReport({kSum}, {wide}, HasSubstr("rank 1 with all-reduce sum f64 [4]"));
  expectReport({kSum}, {longer}, HasSubstr("rank 1 with all-reduce sum f32 [5]"));
  expectReport({kSum}, {kSum, allRanks(2), 6}, HasSubstr("(step instruction 6, attention)"));
}

TEST(Mismatch, OfTypeCountAndDirectionOfTransfers) {
  RankGroup there = pairOf(0, 1), back = pairOf(1, 0);
  Collective wide = kTransfer, longer = kTransfer;
  wide.type = ElementType::F64;
  longer.shape = {5};
  expectReport({kTransfer, there}, {wide, there},
               HasSubstr("rank 1 with transfer f64 [4] from rank 0 to rank 1"));
  expectReport({kTransfer, back}, {longer, back},
               HasSubstr("rank 1 with transfer f32 [5] from rank 1 to rank 0"));
  expectReport({kTransfer, there}, {kTransfer, back},
               "ranks 0 and 1 came to the same place with different collectives: rank 0 with "
               "transfer f32 [4] from rank 0 to rank 1 (step instruction 5, mlp), rank 1 with "
               "transfer f32 [4] from rank 1 to rank 0 (step instruction 5, attention)");
  expectReport({kTransfer, back}, {kTransfer, there},
               HasSubstr("rank 0 with transfer f32 [4] from rank 1 to rank 0"));
}

TEST(Timeout, NamesWhoWaitsWhereAndWhoIsMissing) {
  auto backend = makeBackendUnderTest(3, kPatience);
  if (!backend) {
    return;
  }
  Clock::time_point begin = Clock::now();
  RunResult run = backend->run([&](Communicator &communicator) {
    auto first = communicator.prepare(kSum, allRanks(3), {"step", 3, "embedding"});
    auto second = communicator.prepare(kSum, allRanks(3), {"step", 7, "layers.0.mlp"});
    float operand[4] = {}, result[4];
    EXPECT_TRUE(communicator.run(first, operand, result));
    if (communicator.rank() == 1) {
      while (!communicator.stopped()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      return;
    }
    EXPECT_FALSE(communicator.run(second, operand, result));
  });
  ASSERT_TRUE(run.failure);
  EXPECT_FALSE(run.abandoned);
  EXPECT_THAT(run.failure->message,
              AllOf(HasSubstr(" waited 2 s in all-reduce sum f32 [4] (step instruction 7, "
                              "layers.0.mlp); rank 1 is missing: it last finished all-reduce sum "
                              "f32 [4] (step instruction 3, embedding)"),
                    testing::Not(HasSubstr("rank 2 is missing"))));
  EXPECT_EQ(run.failure->code, ExitCode::Stuck);
  EXPECT_LT(Clock::now() - begin, kSoon);
}

/// Prepares and runs a transfer between this rank and another.
bool transfer(Communicator &communicator, const RankGroup &pair, uint32_t instruction) {
  auto handle = communicator.prepare(kTransfer, pair, {"step", instruction, "x"});
  float operand[4] = {}, result[4];
  bool sends = pair.ranks[0] == communicator.rank();
  return communicator.run(handle, sends ? operand : nullptr, sends ? nullptr : result);
}

TEST(Timeout, NamesTheMissingRankOfATransfer) {
  for (RankGroup pair : {pairOf(0, 1), pairOf(1, 0)}) {
    auto backend = makeBackendUnderTest(3, kPatience);
    if (!backend) {
      continue;
    }
    RunResult run = backend->run([&](Communicator &communicator) {
      if (communicator.rank() > 0) {
        EXPECT_TRUE(transfer(communicator, pairOf(1, 2), 3));
        while (!communicator.stopped()) {
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        return;
      }
      EXPECT_FALSE(transfer(communicator, pair, 7));
    });
    ASSERT_TRUE(run.failure);
    std::string ends = pair.ranks[0] == 0 ? "from rank 0 to rank 1" : "from rank 1 to rank 0";
    EXPECT_EQ(run.failure->message.substr(0, run.failure->message.find(", and ")),
              "rank 0 waited 2 s in transfer f32 [4] " + ends +
                  " (step instruction 7, x); rank 1 is missing: it last finished transfer f32 [4] "
                  "from rank 1 to rank 2 (step instruction 3, x)");
    EXPECT_EQ(run.failure->code, ExitCode::Stuck);
  }
}

TEST(Timeout, TellsWhoIsSlowFromWhoIsStuck) {
  auto backend = makeBackendUnderTest(2, kPatience);
  if (!backend) {
    return;
  }
  RunResult run = backend->run([&](Communicator &communicator) {
    auto handle = communicator.prepare(kSum, allRanks(2), {"step", 3, "embedding"});
    float operand[4] = {}, result[4];
    while (communicator.rank() == 1 && !communicator.stopped()) {
      communicator.moved();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_FALSE(communicator.run(handle, operand, result));
  });
  ASSERT_TRUE(run.failure);
  EXPECT_THAT(
      run.failure->message,
      ContainsRegex("rank 1 is missing: it last finished no collective at all, and still moves, "
                    "0(\\.[0-9])? s ago for the last time"));
  EXPECT_EQ(run.failure->code, ExitCode::Slow);
}

TEST(Timeout, NamesACircle) {
  // A deadlock: rank 0 waits for 1 in one group, 1 for 3 in another, and so on.
  auto backend = makeBackendUnderTest(4, kPatience);
  if (!backend) {
    return;
  }
  RunResult run = backend->run([&](Communicator &communicator) {
    std::vector<Axis> mesh = {{"a", 2}, {"b", 2}};
    bool aFirst = communicator.rank() == 0 || communicator.rank() == 3;
    const uint32_t axis = aFirst ? 0 : 1;
    auto handle = communicator.prepare(kSum, groupOver({&axis, 1}, communicator.rank(), mesh),
                                       {"step", axis, "x"});
    float operand[4] = {}, result[4];
    EXPECT_FALSE(communicator.run(handle, operand, result));
  });
  ASSERT_TRUE(run.failure);
  EXPECT_THAT(run.failure->message, HasSubstr("is missing: it is in all-reduce sum f32 [4]"));
}

TEST(Leaving, IsNoticedWithoutWaitingForTheTimeout) {
  auto backend = makeBackendUnderTest(2, kLong);
  if (!backend) {
    return;
  }
  Clock::time_point begin = Clock::now();
  RunResult run = backend->run([&](Communicator &communicator) {
    auto handle = communicator.prepare(kSum, allRanks(2), {"step", 0, "x"});
    float operand[4] = {}, result[4];
    if (communicator.rank() == 0) {
      EXPECT_FALSE(communicator.run(handle, operand, result));
    }
  });
  ASSERT_TRUE(run.failure);
  EXPECT_EQ(run.failure->rank, 0);
  EXPECT_EQ(run.failure->message,
            "rank 0 waits in all-reduce sum f32 [4] (step instruction 0, x); rank 1 is missing: it "
            "has left the run after no collective at all");
  EXPECT_LT(Clock::now() - begin, kSoon);
}

TEST(Leaving, OfATransferIsNoticedThoughTheRankTransferredWithOthers) {
  for (RankGroup pair : {pairOf(0, 1), pairOf(1, 0)}) {
    auto backend = makeBackendUnderTest(3, kLong);
    if (!backend) {
      continue;
    }
    Clock::time_point begin = Clock::now();
    RunResult run = backend->run([&](Communicator &communicator) {
      if (communicator.rank() == 0) {
        EXPECT_FALSE(transfer(communicator, pair, 7));
      } else {
        bool isDone = transfer(communicator, pairOf(1, 2), 3);
        // Rank 2 may still be in it when the run stops.
        EXPECT_TRUE(isDone || communicator.rank() == 2);
      }
    });
    ASSERT_TRUE(run.failure);
    EXPECT_THAT(run.failure->message,
                AllOf(HasSubstr("rank 0 waits in transfer f32 [4] from rank"),
                      HasSubstr("; rank 1 is missing: it has left the run after transfer f32 [4] "
                                "from rank 1 to rank 2 (step instruction 3, x)")));
    EXPECT_LT(Clock::now() - begin, kSoon);
  }
}

TEST(Failing, StopsAllRanksWithOneReport) {
  auto backend = makeBackendUnderTest(4, kLong);
  if (!backend) {
    return;
  }
  Clock::time_point begin = Clock::now();
  RunResult run = backend->run([&](Communicator &communicator) {
    auto handle = communicator.prepare(kSum, allRanks(4), {"step", 0, "x"});
    float operand[4] = {}, result[4];
    if (communicator.rank() == 2) {
      EXPECT_FALSE(communicator.fail("the disk is on fire"));
      EXPECT_FALSE(communicator.fail("this comes second"));
      return;
    }
    EXPECT_FALSE(communicator.run(handle, operand, result));
    EXPECT_TRUE(communicator.stopped());
  });
  ASSERT_TRUE(run.failure);
  EXPECT_EQ(run.failure->rank, 2);
  EXPECT_EQ(run.failure->message, "the disk is on fire");
  EXPECT_LT(Clock::now() - begin, kSoon);
}

TEST(Failing, ANewRunBeginsAfresh) {
  auto backend = makeBackendUnderTest(2, kLong);
  if (!backend) {
    return;
  }
  EXPECT_FALSE(backend->run([](Communicator &) {}).failure);
  RunResult run = backend->run([&](Communicator &communicator) {
    auto handle = communicator.prepare(kSum, allRanks(2), {"step", 0, "x"});
    float operand[4] = {1, 2, 3, 4}, result[4] = {};
    EXPECT_TRUE(communicator.run(handle, operand, result));
    EXPECT_EQ(result[3], 8);
  });
  EXPECT_FALSE(run.failure);
  EXPECT_FALSE(backend->run([](Communicator &) {}).failure);
  // Reports of this run must not mention the run before.
  run = backend->run([&](Communicator &communicator) {
    if (communicator.rank() == 0) {
      auto handle = communicator.prepare(kSum, allRanks(2), {"step", 0, "x"});
      float operand[4] = {}, result[4];
      EXPECT_FALSE(communicator.run(handle, operand, result));
    }
  });
  ASSERT_TRUE(run.failure);
  EXPECT_THAT(run.failure->message,
              HasSubstr("rank 1 is missing: it has left the run after no collective at all"));
}

} // namespace
