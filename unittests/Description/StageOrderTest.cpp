//===- StageOrderTest.cpp - the order of a pipeline's actions --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Description/StageOrder.h"

#include <gtest/gtest.h>

using namespace weft::desc;

namespace {

using Kind = StageAction::Kind;

/// Backward takes twice as long as forward.
double usualTime(const StageAction &action) { return action.kind == Kind::Forward ? 1 : 2; }

Course courseOf(const StageSchedule &schedule, int64_t microBatches) {
  auto result = simulate(schedule, microBatches, usualTime);
  EXPECT_TRUE(std::holds_alternative<Course>(result)) << std::get<ScheduleFault>(result).text;
  return std::get<Course>(result);
}

std::string faultOf(const StageSchedule &schedule, int64_t microBatches) {
  auto result = simulate(schedule, microBatches, usualTime);
  return std::holds_alternative<Course>(result) ? "" : std::get<ScheduleFault>(result).text;
}

TEST(StageOrder, SchedulesAreAsTheirNamesSay) {
  StageSchedule one = makeOneForwardOneBackward(3, 1, 4);
  EXPECT_EQ(printActions(one[0]), "0F0,0F1,0F2,0B0,0F3,0B1,0B2,0B3");
  EXPECT_EQ(printActions(one[1]), "1F0,1F1,1B0,1F2,1B1,1F3,1B2,1B3");
  EXPECT_EQ(printActions(one[2]), "2F0,2B0,2F1,2B1,2F2,2B2,2F3,2B3");
  EXPECT_EQ(printActions(makeGPipe(2, 1, 3)[0]), "0F0,0F1,0F2,0B0,0B1,0B2");
  EXPECT_EQ(printActions(makeOneForwardOneBackward(4, 1, 2)[0]), "0F0,0F1,0B0,0B1")
      << "fewer than stages";
  EXPECT_EQ(makeSchedule("1f1b", 3, 1, 4), one);
  EXPECT_EQ(makeSchedule("gpipe", 2, 2, 3), makeGPipe(2, 2, 3));
  EXPECT_EQ(makeSchedule("zbh1", 3, 1, 4), makeZeroBubbleH1(3, 4));
  EXPECT_FALSE(makeSchedule("zbh1", 3, 2, 4)) << "it is for one chunk a stage";
  EXPECT_EQ(makeSchedule("zbv", 3, 2, 4), makeZeroBubbleV(3, 4));
  EXPECT_FALSE(makeSchedule("zbv", 3, 1, 4)) << "it is for two chunks a stage";
  EXPECT_FALSE(makeSchedule("other", 2, 1, 3));
}

TEST(StageOrder, SeveralChunksAreInterleaved) {
  StageSchedule two = makeOneForwardOneBackward(2, 2, 4);
  EXPECT_EQ(printActions(two[0]),
            "0F0,0F1,2F0,2F1,0F2,2B0,0F3,2B1,2F2,0B0,2F3,0B1,2B2,2B3,0B2,0B3");
  EXPECT_EQ(printActions(two[1]),
            "1F0,1F1,3F0,3B0,3F1,3B1,1F2,1B0,1F3,1B1,3F2,3B2,3F3,3B3,1B2,1B3");
  EXPECT_EQ(printActions(makeGPipe(2, 2, 2)[1]), "1F0,1F1,3F0,3F1,3B0,3B1,1B0,1B1");
  EXPECT_EQ(stagesOfChunks(two), (std::vector<int64_t>{0, 1, 0, 1}));
}

/// Also where stages do not divide micro-batches, or are more than these.
TEST(StageOrder, InterleavedSchedulesDoNotDeadlock) {
  for (int64_t stages : {2, 3, 4, 7}) {
    for (int64_t chunks : {2, 3, 4}) {
      for (int64_t microBatches = 1; microBatches <= 30; ++microBatches) {
        EXPECT_EQ(faultOf(makeOneForwardOneBackward(stages, chunks, microBatches), microBatches),
                  "");
        EXPECT_EQ(faultOf(makeGPipe(stages, chunks, microBatches), microBatches), "");
      }
    }
  }
}

/// (S - 1) / (V M + S - 1), with V chunks a stage: Narayanan et al., 2021, section 2.2.2.
TEST(StageOrder, BubblesShrinkWithChunks) {
  for (int64_t stages : {2, 4, 7}) {
    for (int64_t chunks : {1, 2, 3}) {
      for (int64_t rounds : {1, 2, 5}) {
        const int64_t microBatches = rounds * stages;
        EXPECT_NEAR(courseOf(makeOneForwardOneBackward(stages, chunks, microBatches), microBatches)
                        .bubble(),
                    double(stages - 1) / double(chunks * microBatches + stages - 1), 1e-12);
      }
    }
  }
}

TEST(StageOrder, EvaluationsGoForward) {
  StageSchedule forward = forwardOf(makeOneForwardOneBackward(2, 1, 5), 3);
  EXPECT_EQ(printActions(forward[1]), "1F0,1F1,1F2");
  auto result = simulate(forward, 3, usualTime, SchedulePurpose::Evaluation);
  EXPECT_EQ(std::get<Course>(result).end, 4);
  EXPECT_EQ(faultOf(forward, 3), "backward of micro-batch 0 in chunk 0 is missing");
}

TEST(StageOrder, TextIsReadAsItIsPrinted) {
  StageSchedule one = makeOneForwardOneBackward(2, 2, 4);
  EXPECT_EQ(std::get<StageSchedule>(parseSchedule({printActions(one[0]), printActions(one[1])})),
            one);
  auto blanks = parseSchedule({" 0F0 ,,0B0,\r", ""});
  EXPECT_EQ(printActions(std::get<StageSchedule>(blanks)[0]), "0F0,0B0");
  EXPECT_TRUE(std::get<StageSchedule>(blanks)[1].empty());
  const std::vector<std::string> gathers = {
      "0UNSHARD,0F0,0RESHARD,0UNSHARD,0B0,0RESHARD,0REDUCE_GRAD", "1F0,1B0"};
  auto both = std::get<StageSchedule>(parseSchedule(gathers));
  EXPECT_EQ(printActions(both[0]), gathers[0]);
  EXPECT_EQ(both[0][3], (StageAction{0, Kind::Unshard, 1})) << "the second one";
}

TEST(StageOrder, WeightGradientsWaitInZeroBubbleSchedules) {
  StageSchedule one = makeZeroBubbleH1(3, 4);
  EXPECT_EQ(printActions(one[0]), "0F0,0F1,0F2,0B0,0F3,0B1,0B2,0B3");
  EXPECT_EQ(printActions(one[1]), "1F0,1F1,1I0,1F2,1I1,1W0,1F3,1I2,1W1,1I3,1W2,1W3");
  EXPECT_EQ(printActions(one[2]), "2F0,2I0,2F1,2I1,2F2,2I2,2W0,2F3,2I3,2W1,2W2,2W3");
  EXPECT_EQ(chunksWithParts(one), (std::vector<int64_t>{1, 2}));
  StageSchedule two = makeZeroBubbleV(2, 3);
  EXPECT_EQ(printActions(two[0]), "0F0,0F1,0F2,3F0,3I0,3W0,3F1,3I1,3W1,0B0,3F2,3I2,3W2,0B1,0B2");
  EXPECT_EQ(printActions(two[1]),
            "1F0,2F0,1F1,2F1,2I0,2W0,1F2,1I0,1W0,2F2,2I1,2W1,1I1,2I2,1I2,1W1,2W2,1W2");
  EXPECT_EQ(stagesOfChunks(two), (std::vector<int64_t>{0, 1, 1, 0}));
  EXPECT_EQ(chunksWithParts(makeOneForwardOneBackward(3, 1, 4)), std::vector<int64_t>());
  for (int64_t stages : {2, 3, 5}) {
    for (int64_t microBatches = 1; microBatches <= 12; ++microBatches) {
      StageSchedule made = makeZeroBubbleH1(stages, microBatches);
      EXPECT_EQ(faultOf(made, microBatches), "") << "also with fewer micro-batches than stages";
      EXPECT_EQ(faultOf(firstOf(made, 1), 1), "");
      EXPECT_EQ(faultOf(makeZeroBubbleV(stages, microBatches), microBatches), "");
    }
  }
}

/// The times of forward and of both parts of backward.
struct PartTimes {
  double forward = 1, inputs = 1, weights = 1;

  double of(const StageAction &action) const {
    return action.kind == Kind::Forward ? forward
                                        : (action.givesInputGradients() ? inputs : 0) +
                                              (action.givesWeightGradients() ? weights : 0);
  }
  double ofMicroBatch() const { return forward + inputs + weights; }
};

/// Waiting is (S - 1) (F + I - W) for each step, with one chunk a stage: Qi et al., 2024, table 2,
/// where I is B. So it takes W to fill what it fills to be no longer than F. With equal times that
/// is a third of 1F1B's, (S - 1) (F + I + W).
TEST(StageOrder, BubblesOfZeroBubbleH1AreThoseOfTheClosedForm) {
  for (PartTimes times : {PartTimes{1, 1, 1}, PartTimes{10, 11, 9}, PartTimes{10, 12, 8}}) {
    for (int64_t stages : {2, 4, 7}) {
      for (int64_t microBatches : {stages, 2 * stages, 3 * stages + 1}) {
        auto waitOf = [&](const StageSchedule &schedule) {
          auto result = simulate(schedule, microBatches,
                                 [&](const StageAction &action) { return times.of(action); });
          return std::get<Course>(result).end - double(microBatches) * times.ofMicroBatch();
        };
        const double others = double(stages - 1);
        EXPECT_DOUBLE_EQ(waitOf(makeZeroBubbleH1(stages, microBatches)),
                         others * (times.forward + times.inputs - times.weights));
        EXPECT_DOUBLE_EQ(waitOf(makeOneForwardOneBackward(stages, 1, microBatches)),
                         others * times.ofMicroBatch());
      }
    }
  }
}

/// Waiting is (S - 1) I for each step, with I of one of the two chunks, half of a stage: the first
/// stage ends as the last gradients come down to it. With equal times that is a sixth of 1F1B's.
TEST(StageOrder, BubblesOfZeroBubbleVAreThoseOfTheClosedForm) {
  for (PartTimes times : {PartTimes{1, 1, 1}, PartTimes{10, 11, 9}, PartTimes{10, 12, 8}}) {
    for (int64_t stages : {2, 4, 6}) {
      for (int64_t microBatches : {2 * stages - 1, 2 * stages, 3 * stages, 31L}) {
        auto result = simulate(makeZeroBubbleV(stages, microBatches), microBatches,
                               [&](const StageAction &action) { return times.of(action); });
        EXPECT_DOUBLE_EQ(std::get<Course>(result).end,
                         2 * double(microBatches) * times.ofMicroBatch() +
                             double(stages - 1) * times.inputs);
      }
    }
  }
}

/// Returns the most micro-batches of which a stage keeps activations, from forward to the end of
/// backward; of several chunks together.
int64_t mostKept(const std::vector<StageAction> &actions) {
  int64_t kept = 0, most = 0;
  for (const StageAction &action : actions) {
    kept += action.kind == Kind::Forward ? 1 : 0;
    most = std::max(most, kept);
    kept -= action.givesWeightGradients() ? 1 : 0;
  }
  return most;
}

TEST(StageOrder, ZeroBubbleSchedulesKeepAsMuchAsTheFirstStageOf1F1B) {
  for (int64_t stages : {2, 4, 7}) {
    const int64_t microBatches = 3 * stages;
    EXPECT_EQ(mostKept(makeOneForwardOneBackward(stages, 1, microBatches)[0]), stages);
    for (const std::vector<StageAction> &actions : makeZeroBubbleH1(stages, microBatches)) {
      EXPECT_EQ(mostKept(actions), stages);
    }
    // Of half a stage each.
    for (const std::vector<StageAction> &actions : makeZeroBubbleV(stages, microBatches)) {
      EXPECT_EQ(mostKept(actions), 2 * stages);
    }
  }
}

/// The schedule of two stages with these actions, 1F1B in the second.
StageSchedule withFirst(const std::string &actions) {
  return std::get<StageSchedule>(parseSchedule({actions, "1F0,1B0,1F1,1B1"}));
}

TEST(StageOrder, ParametersAreGatheredForEachPeriod) {
  StageSchedule two = makeOneForwardOneBackward(2, 2, 2);
  EXPECT_EQ(withGathers(two, GatherPeriod::Step), two);
  EXPECT_EQ(
      printActions(withGathers(two, GatherPeriod::Run)[1]),
      "1UNSHARD,1F0,1F1,1RESHARD,3UNSHARD,3F0,3B0,3F1,3B1,3RESHARD,1UNSHARD,1B0,1B1,1RESHARD");
  EXPECT_EQ(
      printActions(withGathers(makeGPipe(2, 1, 2), GatherPeriod::MicroBatch)[0]),
      "0UNSHARD,0F0,0RESHARD,0UNSHARD,0F1,0RESHARD,0UNSHARD,0B0,0RESHARD,0UNSHARD,0B1,0RESHARD");
  for (GatherPeriod period : {GatherPeriod::Run, GatherPeriod::MicroBatch}) {
    StageSchedule made = withGathers(two, period);
    EXPECT_EQ(faultOf(made, 2), "");
    EXPECT_EQ(
        std::get<StageSchedule>(parseSchedule({printActions(made[0]), printActions(made[1])})),
        made);
    EXPECT_EQ(faultOf(withGathers(firstOf(two, 1), period), 1), "");
    EXPECT_EQ(faultOf(firstOf(made, 1), 1), "");
  }
}

/// Gradients of weights need no parameters, but their sums are complete behind them.
TEST(StageOrder, WeightGradientsNeedNoGathers) {
  StageSchedule one = makeZeroBubbleH1(2, 2);
  EXPECT_EQ(printActions(withGathers(one, GatherPeriod::MicroBatch)[1]),
            "1UNSHARD,1F0,1RESHARD,1UNSHARD,1I0,1RESHARD,1UNSHARD,1F1,1RESHARD,1UNSHARD,1I1,"
            "1RESHARD,1W0,1W1");
  EXPECT_EQ(printActions(withGathers(one, GatherPeriod::Run)[1]),
            "1UNSHARD,1F0,1I0,1F1,1I1,1RESHARD,1W0,1W1");
  EXPECT_EQ(faultOf(withFirst("0F0,0I0,0F1,0I1,0W0,0REDUCE_GRAD,0W1"), 2),
            "weight gradient of micro-batch 1 in chunk 0 comes after REDUCE_GRAD of the chunk, "
            "which would miss its gradients");
  EXPECT_EQ(printActions(forwardOf(withFirst("0F0,0I0,0F1,0I1,0W0,0REDUCE_GRAD,0W1"), 2)[0]),
            "0F0,0F1");
}

TEST(StageOrder, EvaluationsGatherForForward) {
  StageSchedule one = withFirst(
      "0UNSHARD,0F0,0RESHARD,0UNSHARD,0F1,0UNSHARD,0B0,0RESHARD,0UNSHARD,0B1,0REDUCE_GRAD");
  EXPECT_EQ(faultOf(one, 2), "");
  EXPECT_EQ(printActions(forwardOf(one, 2)[0]), "0UNSHARD,0F0,0RESHARD,0UNSHARD,0F1");
  EXPECT_EQ(printActions(forwardOf(one, 1)[0]), "0UNSHARD,0F0,0RESHARD");
  EXPECT_EQ(printActions(firstOf(one, 1)[0]),
            "0UNSHARD,0F0,0RESHARD,0UNSHARD,0B0,0RESHARD,0REDUCE_GRAD");
}

/// They need nothing of other stages, and take their own time.
TEST(StageOrder, GathersTakeTime) {
  StageSchedule one = withFirst("0UNSHARD,0F0,0B0,0F1,0B1,0RESHARD,0REDUCE_GRAD");
  auto timeOf = [](const StageAction &action) { return action.isOfMicroBatch() ? 1.0 : 10.0; };
  Course course = std::get<Course>(simulate(one, 2, timeOf));
  EXPECT_EQ(course.actions.front().end, 10);
  EXPECT_EQ(course.end, 10 + 4 + 4 + 20);
}

TEST(StageOrder, FaultsOfGathersNameTheAction) {
  auto fault = [](const std::string &actions) { return faultOf(withFirst(actions), 2); };
  EXPECT_EQ(fault("0F0,0UNSHARD,0F1,0B0,0B1"),
            "forward of micro-batch 0 in chunk 0 comes before any UNSHARD of the chunk");
  EXPECT_EQ(fault("0UNSHARD,0F0,0F1,0RESHARD,0B0,0B1"),
            "backward of micro-batch 0 in chunk 0 comes after RESHARD of the chunk, and no UNSHARD "
            "stands between");
  EXPECT_EQ(fault("0UNSHARD,0UNSHARD,0F0,0F1,0B0,0B1"),
            "UNSHARD of chunk 0 is there twice, and no forward or backward of the chunk stands "
            "between");
  EXPECT_EQ(fault("0UNSHARD,0F0,0F1,0B0,0B1,0UNSHARD"),
            "UNSHARD of chunk 0 comes last, and nothing uses what it gathers");
  EXPECT_EQ(fault("0RESHARD,0UNSHARD,0F0,0F1,0B0,0B1"),
            "RESHARD of chunk 0 comes without UNSHARD before it");
  EXPECT_EQ(fault("0UNSHARD,0RESHARD,0F0,0F1,0B0,0B1"),
            "RESHARD of chunk 0 comes right after UNSHARD, and no forward or backward of the chunk "
            "stands between");
  EXPECT_EQ(
      fault("0F0,0F1,0B0,0REDUCE_GRAD,0B1"),
      "backward of micro-batch 1 in chunk 0 comes after REDUCE_GRAD of the chunk, which would "
      "miss its gradients");
  EXPECT_EQ(fault("0F0,0F1,0B0,0B1,0REDUCE_GRAD,0REDUCE_GRAD"),
            "REDUCE_GRAD of chunk 0 is there twice");
  EXPECT_EQ(
      fault("0F0,0F1,0B0,0B1,1REDUCE_GRAD"),
      "REDUCE_GRAD of chunk 1 is in stage 0, expected stage 1, which has other actions of that "
      "chunk");
  EXPECT_EQ(fault("0F0,0F1,0B0,0B1,2REDUCE_GRAD"),
            "forward of micro-batch 0 in chunk 2 is missing");
}

TEST(StageOrder, FaultsOfTextNameTheAction) {
  auto faultOfText = [](const std::string &row) {
    auto result = parseSchedule({"0F0", row});
    auto *fault = std::get_if<ScheduleFault>(&result);
    return fault ? std::to_string(fault->stage) + ": " + fault->text : "";
  };
  const std::string expected = "1: expected actions such as 0F3 or 0B3, forward or backward of "
                               "micro-batch 3 in chunk 0, 0I3 or 0W3, its gradients of inputs or "
                               "weights, or 0UNSHARD, 0RESHARD or 0REDUCE_GRAD, got ";
  for (const char *bad :
       {"0G0", "0I", "0W-1", "F0", "0F", "1", "-1F0", "0F-1", "1024F0", "0F1048576", "0B0x",
        "99999999999999999999F0", "UNSHARD", "0UNSHARD1", "0REDUCE", "0RESHARDx"}) {
    EXPECT_EQ(faultOfText(std::string("0B0,") + bad).substr(0, expected.size()), expected) << bad;
  }
  EXPECT_EQ(faultOfText("0SEND_F1"), expected + "'0SEND_F1'");
  EXPECT_EQ(faultOfText("\x01" + std::string(99, 'F')), expected + "'?FFFFFFFFFFFFFFFFFFF...'");
}

/// Both have the bubble of (S - 1) / (M + S - 1).
TEST(StageOrder, BubblesAreThoseOfTheClosedForm) {
  for (int64_t stages : {1, 2, 4, 7}) {
    for (int64_t microBatches : {1, 4, 8, 33}) {
      double expected = double(stages - 1) / double(microBatches + stages - 1);
      EXPECT_NEAR(courseOf(makeGPipe(stages, 1, microBatches), microBatches).bubble(), expected,
                  1e-12);
      EXPECT_NEAR(
          courseOf(makeOneForwardOneBackward(stages, 1, microBatches), microBatches).bubble(),
          expected, 1e-12);
    }
  }
}

/// The table of a post that compares kinds of parallelism, see docs/reference-claims.md.
TEST(StageOrder, BubblesAreThoseOfThePostsTable) {
  constexpr int64_t kMicroBatches[] = {4, 8, 16, 32, 64};
  const std::pair<int64_t, std::vector<double>> table[] = {{2, {20.0, 11.1, 5.9, 3.0, 1.5}},
                                                           {4, {42.9, 27.3, 15.8, 8.6, 4.5}},
                                                           {8, {63.6, 46.7, 30.4, 17.9, 9.9}}};
  for (const auto &[stages, shares] : table) {
    for (size_t i = 0; i < shares.size(); ++i) {
      for (const StageSchedule &schedule :
           {makeGPipe(stages, 1, kMicroBatches[i]),
            makeOneForwardOneBackward(stages, 1, kMicroBatches[i])}) {
        EXPECT_NEAR(100 * courseOf(schedule, kMicroBatches[i]).bubble(), shares[i], 0.05)
            << stages << " stages, " << kMicroBatches[i] << " micro-batches";
      }
    }
  }
}

TEST(StageOrder, ACourseDoesWhatIsNeededFirst) {
  Course course = courseOf(makeOneForwardOneBackward(2, 1, 2), 2);
  ASSERT_EQ(course.actions.size(), 8u);
  EXPECT_EQ(course.end, 9); // 2 * 3 of work, and 3 of waiting.
  auto endOf = [&](const StageAction &action) {
    for (const TimedAction &each : course.actions) {
      if (each.action == action) {
        return each.end;
      }
    }
    return -1.0;
  };
  EXPECT_EQ(endOf({0, Kind::Forward, 1}), 2);
  EXPECT_EQ(endOf({1, Kind::Backward, 0}), 4);
  EXPECT_EQ(endOf({0, Kind::Backward, 0}), 6);
}

TEST(StageOrder, FaultsNameTheAction) {
  StageSchedule good = makeOneForwardOneBackward(2, 1, 2), bad = good;
  bad[1].pop_back();
  EXPECT_EQ(faultOf(bad, 2), "backward of micro-batch 1 in chunk 1 is missing");
  bad = good;
  bad[0].push_back(bad[0].front());
  EXPECT_EQ(faultOf(bad, 2), "forward of micro-batch 0 in chunk 0 is there twice");
  bad = good;
  bad[0][1].microBatch = 7;
  EXPECT_EQ(faultOf(bad, 2),
            "forward of micro-batch 7 in chunk 0, expected micro-batches from 0 to 1");
  bad = good;
  bad[1][0].chunk = 0;
  EXPECT_EQ(faultOf(bad, 2), "forward of micro-batch 0 in chunk 0 is in stage 1, expected stage 0, "
                             "which has other actions of that chunk");
  bad = good;
  bad[1].clear();
  EXPECT_EQ(faultOf(bad, 2), "stage 1 has no actions");
  bad[1].push_back({2, Kind::Forward, 0});
  EXPECT_EQ(faultOf(bad, 2), "forward of micro-batch 0 in chunk 1 is missing");
  bad = good;
  std::swap(bad[0][0], bad[0][1]);
  EXPECT_EQ(faultOf(bad, 2), "forward of micro-batch 1 in chunk 0 comes before that of micro-batch "
                             "0, but sums over micro-batches have their order");
  bad = good;
  std::swap(bad[1][0], bad[1][1]);
  EXPECT_EQ(faultOf(bad, 2),
            "backward of micro-batch 0 in chunk 0 waits for backward of micro-batch "
            "0 in chunk 1, which never begins");
}

/// A chunk may have some micro-batches in parts and others not.
TEST(StageOrder, FaultsOfPartsNameTheAction) {
  auto fault = [](const std::string &actions) { return faultOf(withFirst(actions), 2); };
  EXPECT_EQ(fault("0F0,0F1,0I0,0W0,0I1,0W1"), "");
  EXPECT_EQ(fault("0F0,0F1,0B0,0I1,0W1"), "");
  EXPECT_EQ(fault("0F0,0F1,0I0,0W0,0B1"), "");
  EXPECT_EQ(fault("0F0,0F1,0I0,0I1,0W1,0W0"),
            "weight gradient of micro-batch 1 in chunk 0 comes before that of micro-batch 0, but "
            "sums over micro-batches have their order");
  EXPECT_EQ(fault("0F0,0F1,0I0,0B1,0W0"),
            "backward of micro-batch 1 in chunk 0 comes before weight gradient of micro-batch 0 in "
            "chunk 0, but sums over micro-batches have their order");
  EXPECT_EQ(fault("0F0,0F1,0I1,0W1,0I0,0W0"),
            "input gradient of micro-batch 1 in chunk 0 comes before that of micro-batch 0, but "
            "sums over micro-batches have their order");
  EXPECT_EQ(fault("0F0,0F1,0W0,0I0,0B1"), "weight gradient of micro-batch 0 in chunk 0 comes "
                                          "before input gradient of micro-batch 0 in chunk 0");
  EXPECT_EQ(fault("0F0,0F1,0I0,0I0,0W0,0B1"),
            "input gradient of micro-batch 0 in chunk 0 is there twice");
  EXPECT_EQ(fault("0F0,0F1,0I0,0W0,0W0,0B1"),
            "weight gradient of micro-batch 0 in chunk 0 is there twice");
  EXPECT_EQ(fault("0F0,0F1,0B0,0W0,0B1"), "weight gradient of micro-batch 0 in chunk 0 comes "
                                          "after backward of micro-batch 0 in chunk 0");
  EXPECT_EQ(fault("0F0,0F1,0I0,0B0,0B1"), "backward of micro-batch 0 in chunk 0 comes after "
                                          "input gradient of micro-batch 0 in chunk 0");
  EXPECT_EQ(fault("0F0,0F1,0I0,0W0,0I1"), "weight gradient of micro-batch 1 in chunk 0 is missing");
  EXPECT_EQ(fault("0F0,0F1,0B0"), "backward of micro-batch 1 in chunk 0 is missing");
  EXPECT_EQ(fault("0F0,0F1,0B0,0I2,0W2"),
            "input gradient of micro-batch 2 in chunk 0, expected micro-batches from 0 to 1");
}

/// Backward of the chunk before waits for gradients of inputs alone.
TEST(StageOrder, OthersWaitForInputGradients) {
  auto schedule = std::get<StageSchedule>(parseSchedule({"0F0,0B0", "1F0,1I0,1W0"}));
  PartTimes times;
  Course course = std::get<Course>(
      simulate(schedule, 1, [&](const StageAction &action) { return times.of(action); }));
  EXPECT_EQ(course.end, 5) << "0F0, 1F0, 1I0, and both parts of 0B0";
  schedule = std::get<StageSchedule>(parseSchedule({"0F0,0B0", "1I0,1F0,1W0"}));
  EXPECT_EQ(faultOf(schedule, 1), "backward of micro-batch 0 in chunk 0 waits for input gradient "
                                  "of micro-batch 0 in chunk 1, which never begins");
}

} // namespace
