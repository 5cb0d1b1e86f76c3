//===- TransferOrderTest.cpp - when pipeline stages exchange values --------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Pipeline/Schedule/TransferOrder.h"

#include "gtest/gtest.h"

#include <map>
#include <set>

using namespace weft;
using namespace weft::desc;

namespace {

using Kind = StageAction::Kind;
using TimeOf = std::function<double(const StageAction &)>;

/// Transfers from each chunk to the next of another stage, forward and back.
std::vector<ActionTransfer> transfersOf(const StageSchedule &schedule) {
  std::vector<int64_t> stages = stagesOfChunks(schedule);
  std::set<StageAction> all;
  for (const std::vector<StageAction> &actions : schedule) {
    all.insert(actions.begin(), actions.end());
  }
  std::vector<ActionTransfer> transfers;
  for (const std::vector<StageAction> &actions : schedule) {
    for (const StageAction &maker : actions) {
      if (maker.kind == Kind::WeightGradients) {
        continue;
      }
      StageAction user = {maker.chunk + 1, maker.kind, maker.microBatch};
      if (maker.kind != Kind::Forward) {
        user = {maker.chunk - 1, Kind::InputGradients, maker.microBatch};
        user.kind = all.contains(user) ? user.kind : Kind::Backward;
      }
      bool isThere = user.chunk >= 0 && user.chunk < int64_t(stages.size());
      if (isThere && stages[size_t(maker.chunk)] != stages[size_t(user.chunk)]) {
        transfers.push_back({maker, user, stages[size_t(maker.chunk)], stages[size_t(user.chunk)]});
      }
    }
  }
  return transfers;
}

/// "0F0 >1F0 0F1 ...": what a stage does, with transfers to (>) and for (<) actions.
std::string listOf(int64_t stage, const std::vector<StageEvent> &events,
                   const StageSchedule &schedule, const std::vector<ActionTransfer> &transfers) {
  std::vector<int64_t> stages = stagesOfChunks(schedule);
  std::string text;
  for (const StageEvent &event : events) {
    const ActionTransfer *transfer = event.transfer ? &transfers[*event.transfer] : nullptr;
    if (transfer && (transfer->from == stage || transfer->to == stage)) {
      text += (transfer->from == stage ? " >" : " <") + printActions({transfer->user});
    } else if (!transfer && stages[size_t(event.action.chunk)] == stage) {
      text += " " + printActions({event.action});
    }
  }
  return text;
}

/// The share of time in which stages wait, if each does its events in order, actions take `timeOf`,
/// and transfers no time, but both stages.
double bubbleOf(const std::vector<StageEvent> &events, const StageSchedule &schedule,
                const std::vector<ActionTransfer> &transfers, const TimeOf &timeOf) {
  std::vector<int64_t> stages = stagesOfChunks(schedule);
  std::map<int64_t, double> free;
  double busy = 0, end = 0;
  for (const StageEvent &event : events) {
    if (event.transfer) {
      const ActionTransfer &transfer = transfers[*event.transfer];
      free[transfer.from] = free[transfer.to] = std::max(free[transfer.from], free[transfer.to]);
      continue;
    }
    double &own = free[stages[size_t(event.action.chunk)]];
    own += timeOf(event.action);
    busy += timeOf(event.action);
    end = std::max(end, own);
  }
  return 1 - busy / (end * double(schedule.size()));
}

struct Ordered {
  StageSchedule schedule;
  std::vector<ActionTransfer> transfers;
  std::vector<StageEvent> events;

  Ordered(StageSchedule given, const TimeOf &timeOf)
      : schedule(std::move(given)), transfers(transfersOf(schedule)) {
    auto made = orderTransfers(schedule, transfers, timeOf);
    EXPECT_TRUE(made.has_value());
    events = made.value_or(std::vector<StageEvent>());
  }
  std::string list(int64_t stage) const { return listOf(stage, events, schedule, transfers); }
  double bubble(const TimeOf &timeOf) const {
    return bubbleOf(events, schedule, transfers, timeOf);
  }
};

TimeOf timesOf(double forward, double backward) {
  return
      [=](const StageAction &action) { return action.kind == Kind::Forward ? forward : backward; };
}

TEST(TransferOrder, ValuesAreTakenWhenTheyAreNeeded) {
  Ordered made(makeOneForwardOneBackward(2, 1, 3), timesOf(64, 128));
  EXPECT_EQ(made.list(0), " 0F0 >1F0 0F1 <0B0 >1F1 0B0 0F2 <0B1 >1F2 0B1 <0B2 0B2");
  EXPECT_EQ(made.list(1), " <1F0 1F0 1B0 >0B0 <1F1 1F1 1B1 >0B1 <1F2 1F2 1B2 >0B2");
}

/// (S - 1) / (M + S - 1), though transfers make both stages wait.
TEST(TransferOrder, OneChunkHasTheBubbleOfItsSchedule) {
  for (int64_t stages : {2, 4, 8}) {
    for (int64_t microBatches : {4, 16, 33}) {
      double expected = double(stages - 1) / double(microBatches + stages - 1);
      TimeOf timeOf = timesOf(64000, 128000);
      Ordered made(makeOneForwardOneBackward(stages, 1, microBatches), timeOf);
      EXPECT_NEAR(made.bubble(timeOf), expected, 2e-3);
    }
  }
}

/// Gradients are sent on before those of weights are computed. Waiting is that of the closed form,
/// see StageOrderTest.cpp, but for the transfers themselves.
TEST(TransferOrder, PartsOfBackwardHaveTheBubbleOfTheirSchedule) {
  constexpr double kUnit = 64000;
  TimeOf timeOf = [](const StageAction &action) {
    return kUnit * (action.kind == Kind::Backward ? 2 : 1);
  };
  for (int64_t stages : {2, 4, 8}) {
    for (int64_t microBatches : {2 * stages, 33L}) {
      auto bubbleOfWait = [&](double wait, double work) { return wait / (wait + work); };
      Ordered one(makeZeroBubbleH1(stages, microBatches), timeOf);
      EXPECT_NEAR(one.bubble(timeOf), bubbleOfWait(double(stages - 1), 3 * double(microBatches)),
                  1e-2);
      Ordered two(makeZeroBubbleV(stages, microBatches), timeOf);
      EXPECT_NEAR(two.bubble(timeOf), bubbleOfWait(double(stages - 1), 6 * double(microBatches)),
                  1e-2);
    }
  }
}

/// A last stage that has a head, too: stages would meet seldom if they took gradients only when
/// they need them next.
TEST(TransferOrder, PartsOfUnequalStagesAreNearTheirSchedule) {
  for (double head : {0.3, 1.0, 2.0}) {
    TimeOf timeOf = [=](const StageAction &action) {
      double own = action.kind == Kind::Forward          ? 1 + (action.chunk == 3 ? head : 0)
                   : action.kind == Kind::Backward       ? 2
                   : action.kind == Kind::InputGradients ? 1.1
                                                         : 0.9;
      return 64000 * own;
    };
    StageSchedule schedule = makeZeroBubbleH1(4, 32);
    Course course = std::get<Course>(simulate(schedule, 32, timeOf));
    EXPECT_NEAR(Ordered(schedule, timeOf).bubble(timeOf), course.bubble(), 0.02) << head;
  }
}

/// The shape of a model with 126 layers and a head, in two chunks for each of 16 stages: unequal
/// chunks let stages wait for 3.7 % of a step if transfers take nobody's time.
TEST(TransferOrder, SeveralChunksAreNearTheirSchedule) {
  auto model = [](double backward) {
    return [=](const StageAction &action) {
      double layers = action.chunk < 30 ? 4 : 3;
      double head = action.chunk == 31 ? 2 : 0;
      return 64 * (action.kind == Kind::Forward ? layers + head : backward * layers);
    };
  };
  Ordered made(makeOneForwardOneBackward(16, 2, 256), model(3));
  EXPECT_LT(made.bubble(model(3)), 0.06);
  // If actions take a little less or more than was thought.
  EXPECT_LT(made.bubble(model(2.9)), 0.08);
  EXPECT_LT(made.bubble(model(3.3)), 0.08);
}

/// Values that skip chunks, and circles.
TEST(TransferOrder, ACircleIsNoOrder) {
  StageSchedule schedule = makeOneForwardOneBackward(2, 1, 1);
  std::vector<ActionTransfer> transfers = transfersOf(schedule);
  TimeOf timeOf = timesOf(1, 2);
  EXPECT_TRUE(orderTransfers(schedule, transfers, timeOf).has_value());
  transfers.push_back({{1, Kind::Forward, 0}, {0, Kind::Forward, 0}, 1, 0});
  EXPECT_FALSE(orderTransfers(schedule, transfers, timeOf).has_value());
}

} // namespace
