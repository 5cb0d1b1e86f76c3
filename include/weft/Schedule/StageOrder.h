//===- StageOrder.h - the order of a pipeline's actions --------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A schedule says in which order each stage of a pipeline does its actions: forward and
// backward of each micro-batch. From it and the times of actions follows a course: when each
// action begins and ends, if a stage does one at a time, as early as those that it needs
// have ended.
//
// Schedules are data: anybody may write one. GPipe is that of Huang et al., 2019, 1F1B the
// one without flushes within a batch of Narayanan et al., 2021 (section 2.2.1).
//
// All functions are pure and may run on any thread.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_SCHEDULE_STAGEORDER_H
#define WEFT_SCHEDULE_STAGEORDER_H

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace weft::schedule {

/// The work of a stage on one micro-batch.
struct StageAction {
  enum class Direction : uint8_t { Forward, Backward };

  int64_t stage = 0;
  Direction direction = Direction::Forward;
  int64_t microBatch = 0;
  auto operator<=>(const StageAction &) const = default;
};

/// Returns "forward of micro-batch 3 in stage 1".
std::string describe(const StageAction &action);

/// The actions of each stage, in its order.
using StageSchedule = std::vector<std::vector<StageAction>>;

/// Return the schedule for `stages` stages and `microBatches` micro-batches. GPipe does forward of
/// all micro-batches first. 1F1B does so for as many as there are stages behind, and then backward
/// of one after forward of another, so that a stage has few micro-batches in flight.
StageSchedule makeGPipe(int64_t stages, int64_t microBatches);
StageSchedule makeOneForwardOneBackward(int64_t stages, int64_t microBatches);
/// Returns the schedule of that name: "gpipe" or "1f1b"; nothing for other names.
std::optional<StageSchedule> makeSchedule(std::string_view name, int64_t stages,
                                          int64_t microBatches);

/// An action and when it begins and ends, in seconds or any other unit.
struct TimedAction {
  StageAction action;
  double begin = 0, end = 0;
};

struct Course {
  /// In the order in which they begin; those that begin together in the order of their stages.
  std::vector<TimedAction> actions;
  double end = 0;

  /// Returns the share of all stages' time in which they do nothing.
  double bubble() const;
};

/// Returns the course of a schedule. Forward needs forward of the stage before, backward that of
/// the stage behind, and backward of the last stage its forward. `timeOf` is positive. Returns an
/// error that names the place if an action is missing, doubled, unknown, or waits for itself.
std::variant<Course, std::string>
simulate(const StageSchedule &schedule, int64_t microBatches,
         const std::function<double(const StageAction &)> &timeOf);

} // namespace weft::schedule

#endif // WEFT_SCHEDULE_STAGEORDER_H
