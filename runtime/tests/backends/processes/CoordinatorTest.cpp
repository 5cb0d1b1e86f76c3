//===- CoordinatorTest.cpp - which failure is the first -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/processes/Coordinator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

using namespace weft::rt;
using namespace weft::rt::mpi;
using testing::ElementsAre;
using testing::IsEmpty;

namespace {

constexpr auto kNow = Coordinator::Clock::time_point();
/// The timeout of ranks, and the times at which a waiting rank last made progress.
constexpr std::chrono::milliseconds kPatience(2000);

/// A coordinator of three ranks, and the messages that it sends.
struct Court {
  using Told = std::tuple<int64_t, Message, std::string>;
  std::vector<Told> told;
  Coordinator coordinator{{"process 10 on 'a'", "process 11 on 'a'", "process 12 on 'b'"},
                          [this](int64_t rank, Message message, const std::string &text) {
                            told.emplace_back(rank, message, text);
                          }};

  std::string report() const {
    const std::optional<Failure> &failure = coordinator.failure();
    return failure ? std::to_string(failure->rank) + ": " + failure->message : "none";
  }
};

Waiting waitingFor(std::vector<int64_t> missing, bool isTooLong) {
  return {"rank 1 waits in all-reduce", isTooLong, 3, 7, std::move(missing), kPatience};
}

TEST(CoordinatorTest, TellsTheOthersOfTheFirstFailureOnly) {
  Court court;
  court.coordinator.failed({1, "the disk is full", ExitCode::OutOfMemory});
  court.coordinator.failed({2, "another"});
  EXPECT_EQ(court.report(), "1: the disk is full");
  EXPECT_THAT(court.told, ElementsAre(Court::Told(1, Message::Stop, "1 4 the disk is full"),
                                      Court::Told(2, Message::Stop, "1 4 the disk is full")));
}

TEST(CoordinatorTest, TellsNothingToWhoIsGone) {
  Court court;
  court.coordinator.isGone(2);
  EXPECT_EQ(court.report(),
            "2: rank 2 is gone: its process 12 on 'b' has ended without a word, as it "
            "does when it is killed");
  EXPECT_EQ(court.coordinator.failure()->code, ExitCode::Dead);
  ASSERT_EQ(court.told.size(), 1u);
  EXPECT_EQ(std::get<0>(court.told[0]), 1);
}

TEST(CoordinatorTest, WhoHasLeftMayBeGone) {
  Court court;
  for (int64_t rank : {1, 2}) {
    court.coordinator.left(rank, {"has left the run", {}}, kNow);
    court.coordinator.isGone(rank);
  }
  EXPECT_EQ(court.report(), "none");
  EXPECT_FALSE(court.coordinator.allLeft());
  court.coordinator.left(0, {"has left the run", {}}, kNow);
  EXPECT_TRUE(court.coordinator.allLeft());
  court.coordinator.beginAgain();
  EXPECT_FALSE(court.coordinator.allLeft());
}

TEST(CoordinatorTest, AsksNobodyWhileAllCanStillCome) {
  Court court;
  court.coordinator.left(2, {"has left the run", {{3, 7}}}, kNow); // It has begun that collective.
  court.coordinator.waits(1, waitingFor({2}, false), kNow);
  EXPECT_THAT(court.told, IsEmpty());
}

TEST(CoordinatorTest, ReportsWhoHasLeftBeforeACollective) {
  Court court;
  court.coordinator.left(2, {"has left the run after all-gather", {{3, 6}}}, kNow);
  court.coordinator.waits(1, waitingFor({2}, false), kNow);
  court.coordinator.answers(0, {"is in all-reduce", kPatience}, kNow);
  EXPECT_EQ(court.report(), "1: rank 1 waits in all-reduce; rank 2 is missing: it has left the run "
                            "after all-gather");
  EXPECT_EQ(court.coordinator.failure()->code, ExitCode::Error);
}

TEST(CoordinatorTest, WaitsForAnswersAndThenNamesWhoIsMute) {
  Court court;
  court.coordinator.waits(1, waitingFor({0, 2}, true), kNow);
  EXPECT_THAT(court.told,
              ElementsAre(Court::Told(0, Message::Asks, ""), Court::Told(2, Message::Asks, "")));
  court.coordinator.answers(0, {"last finished all-gather", kPatience}, kNow);
  court.coordinator.look(kNow + Coordinator::kPatience / 2);
  EXPECT_EQ(court.report(), "none");
  court.coordinator.look(kNow + Coordinator::kPatience);
  EXPECT_EQ(
      court.report(),
      "1: rank 1 waits in all-reduce; rank 0 is missing: it last finished all-gather, and has not "
      "moved for 2 s; rank 2 is missing: its process 12 on 'b' does not answer, as when it is "
      "stopped");
  EXPECT_EQ(court.coordinator.failure()->code, ExitCode::Stuck);
  // A stopped rank 2 may be woken.
  EXPECT_EQ(std::get<0>(court.told.back()), 2);
  EXPECT_EQ(std::get<1>(court.told.back()), Message::Stop);
}

TEST(CoordinatorTest, TellsWhoIsSlowFromWhoIsStuck) {
  for (auto [ago, code] : {std::pair(std::chrono::milliseconds(300), ExitCode::Slow),
                           std::pair(kPatience, ExitCode::Stuck)}) {
    Court court;
    court.coordinator.waits(1, waitingFor({2}, true), kNow);
    court.coordinator.answers(0, {"is in all-reduce", kPatience}, kNow);
    court.coordinator.answers(2, {"last finished all-gather", ago}, kNow);
    EXPECT_EQ(court.coordinator.failure()->code, code);
    EXPECT_EQ(court.report(),
              std::string("1: rank 1 waits in all-reduce; rank 2 is missing: it last finished "
                          "all-gather, and ") +
                  (code == ExitCode::Slow ? "still moves, 0.3 s ago for the last time"
                                          : "has not moved for 2 s"));
  }
}

TEST(CoordinatorTest, ReportsAtOnceWhenAllHaveAnswered) {
  Court court;
  court.coordinator.waits(1, waitingFor({2}, true), kNow);
  court.coordinator.waits(0, waitingFor({2}, true), kNow); // The first report counts.
  court.coordinator.answers(0, {"is in all-reduce", kPatience}, kNow);
  court.coordinator.answers(2, {"is in permute", kPatience}, kNow);
  EXPECT_EQ(court.report(), "1: rank 1 waits in all-reduce; rank 2 is missing: it is in permute, "
                            "and has not moved for 2 s");
}

TEST(CoordinatorTest, ADeviceMissesNobodyByName) {
  Court court;
  court.coordinator.waits(1, {"rank 1 waited", true, Waiting::kDevice, 0, {2}, kPatience}, kNow);
  court.coordinator.answers(0, {"last finished all-gather", kPatience}, kNow);
  court.coordinator.answers(2, {"last finished all-gather; its device is idle", kPatience}, kNow);
  EXPECT_EQ(court.report(),
            "1: rank 1 waited; rank 2 last finished all-gather; its device is idle, "
            "and has not moved for 2 s");
  EXPECT_EQ(court.coordinator.failure()->code, ExitCode::Stuck);
}

TEST(CoordinatorTest, MessagesComeBackAsTheyWere) {
  auto waiting = Waiting::decode(waitingFor({0, 2}, true).encode(), 3);
  ASSERT_TRUE(waiting);
  EXPECT_EQ(waiting->text, "rank 1 waits in all-reduce");
  EXPECT_TRUE(waiting->isTooLong);
  EXPECT_EQ(waiting->group, 3);
  EXPECT_EQ(waiting->begun, 7);
  EXPECT_THAT(waiting->missing, ElementsAre(0, 2));
  EXPECT_EQ(waiting->patience, kPatience);
  auto failure = decodeFailure(encode({3, "no\nmemory", ExitCode::OutOfMemory}), 4);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->rank, 3);
  EXPECT_EQ(failure->message, "no\nmemory");
  EXPECT_EQ(failure->code, ExitCode::OutOfMemory);
  auto answer = Answer::decode(Answer{"is in all-reduce", kPatience}.encode());
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->text, "is in all-reduce");
  EXPECT_EQ(answer->moved, kPatience);
  auto leaving = Leaving::decode(Leaving{"has left\nthe run", {{1, 2}, {5, 9}}}.encode());
  ASSERT_TRUE(leaving);
  EXPECT_EQ(leaving->text, "has left\nthe run");
  EXPECT_THAT(leaving->begun, ElementsAre(std::pair(1, 2), std::pair(5, 9)));
}

TEST(CoordinatorTest, WhatIsNoMessageFailsTheRun) {
  for (auto [kind, text] : {std::pair(uint8_t(Message::Failed), "3 1 a rank that is not there"),
                            {uint8_t(Message::Failed), "-1 1 nor this one"},
                            {uint8_t(Message::Failed), "1 0 no failure"},
                            {uint8_t(Message::Failed), "1 2 no code"},
                            {uint8_t(Message::Failed), "one 1 no number"},
                            {uint8_t(Message::Failed), "1"},
                            {uint8_t(Message::Failed), ""},
                            {uint8_t(Message::Waits), "1 2000 3 7 1 3 a rank that is not there"},
                            {uint8_t(Message::Waits), "1 2000 3 7 4 0 1 2 0 more than there are"},
                            {uint8_t(Message::Waits), "2 2000 3 7 0 no truth"},
                            {uint8_t(Message::Waits), "1 99999999999999 3 7 0 no time"},
                            {uint8_t(Message::Waits), "1 2000 -2 7 0 no group"},
                            {uint8_t(Message::Left), "2 1 2 a count is missing"},
                            {uint8_t(Message::Left), "99999999999 1 2 all are missing"},
                            {uint8_t(Message::Answers), "-1 before it moved"},
                            {uint8_t(Message::Answers), ""},
                            {uint8_t(Message::Stop), "0 1 from rank 0 only"},
                            {uint8_t(99), "of no kind"}}) {
    Court court;
    court.coordinator.handle(1, kind, text, kNow);
    EXPECT_EQ(court.report(), "1: rank 1 has sent an invalid message") << int(kind) << text;
    EXPECT_EQ(court.coordinator.failure()->code, ExitCode::Error);
  }
}

} // namespace
