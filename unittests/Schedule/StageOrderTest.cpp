//===- StageOrderTest.cpp - the order of a pipeline's actions --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Schedule/StageOrder.h"

#include <gtest/gtest.h>

using namespace weft::schedule;

namespace {

using Direction = StageAction::Direction;

/// Backward takes twice as long as forward.
double usualTime(const StageAction &action) {
  return action.direction == Direction::Forward ? 1 : 2;
}

Course courseOf(const StageSchedule &schedule, int64_t microBatches) {
  auto result = simulate(schedule, microBatches, usualTime);
  EXPECT_TRUE(std::holds_alternative<Course>(result)) << std::get<std::string>(result);
  return std::get<Course>(result);
}

std::string faultOf(const StageSchedule &schedule, int64_t microBatches) {
  auto result = simulate(schedule, microBatches, usualTime);
  return std::holds_alternative<Course>(result) ? "" : std::get<std::string>(result);
}

/// "F0 F1 B0 B1".
std::string textOf(const std::vector<StageAction> &actions) {
  std::string text;
  for (const StageAction &action : actions) {
    text += text.empty() ? "" : " ";
    text +=
        (action.direction == Direction::Forward ? "F" : "B") + std::to_string(action.microBatch);
  }
  return text;
}

TEST(StageOrder, SchedulesAreAsTheirNamesSay) {
  StageSchedule one = makeOneForwardOneBackward(3, 4);
  EXPECT_EQ(textOf(one[0]), "F0 F1 F2 B0 F3 B1 B2 B3");
  EXPECT_EQ(textOf(one[1]), "F0 F1 B0 F2 B1 F3 B2 B3");
  EXPECT_EQ(textOf(one[2]), "F0 B0 F1 B1 F2 B2 F3 B3");
  EXPECT_EQ(textOf(makeGPipe(2, 3)[0]), "F0 F1 F2 B0 B1 B2");
  EXPECT_EQ(textOf(makeOneForwardOneBackward(4, 2)[0]), "F0 F1 B0 B1") << "fewer than stages";
  EXPECT_EQ(makeSchedule("1f1b", 3, 4), one);
  EXPECT_EQ(makeSchedule("gpipe", 2, 3), makeGPipe(2, 3));
  EXPECT_FALSE(makeSchedule("other", 2, 3));
}

/// Both have the bubble of (S - 1) / (M + S - 1).
TEST(StageOrder, BubblesAreThoseOfTheClosedForm) {
  for (int64_t stages : {1, 2, 4, 7}) {
    for (int64_t microBatches : {1, 4, 8, 33}) {
      double expected = double(stages - 1) / double(microBatches + stages - 1);
      EXPECT_NEAR(courseOf(makeGPipe(stages, microBatches), microBatches).bubble(), expected,
                  1e-12);
      EXPECT_NEAR(courseOf(makeOneForwardOneBackward(stages, microBatches), microBatches).bubble(),
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
      for (const StageSchedule &schedule : {makeGPipe(stages, kMicroBatches[i]),
                                            makeOneForwardOneBackward(stages, kMicroBatches[i])}) {
        EXPECT_NEAR(100 * courseOf(schedule, kMicroBatches[i]).bubble(), shares[i], 0.05)
            << stages << " stages, " << kMicroBatches[i] << " micro-batches";
      }
    }
  }
}

TEST(StageOrder, ACourseDoesWhatIsNeededFirst) {
  Course course = courseOf(makeOneForwardOneBackward(2, 2), 2);
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
  EXPECT_EQ(endOf({0, Direction::Forward, 1}), 2);
  EXPECT_EQ(endOf({1, Direction::Backward, 0}), 4);
  EXPECT_EQ(endOf({0, Direction::Backward, 0}), 6);
}

TEST(StageOrder, FaultsNameTheAction) {
  StageSchedule good = makeOneForwardOneBackward(2, 2), bad = good;
  bad[1].pop_back();
  EXPECT_EQ(faultOf(bad, 2), "backward of micro-batch 1 in stage 1 is missing");
  bad = good;
  bad[0].push_back(bad[0].front());
  EXPECT_EQ(faultOf(bad, 2), "forward of micro-batch 0 in stage 0 is there twice");
  bad = good;
  bad[0][1].microBatch = 7;
  EXPECT_EQ(faultOf(bad, 2),
            "forward of micro-batch 7 in stage 0, expected micro-batches from 0 to 1");
  bad = good;
  bad[1][0].stage = 0;
  EXPECT_EQ(faultOf(bad, 2), "stage 1 has forward of micro-batch 0 in stage 0");
  bad = good;
  std::swap(bad[1][0], bad[1][1]);
  EXPECT_EQ(faultOf(bad, 2),
            "backward of micro-batch 0 in stage 0 waits for backward of micro-batch "
            "0 in stage 1, which never begins");
}

} // namespace
