//===- StageOrder.cpp - the order of a pipeline's actions ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Schedule/StageOrder.h"

#include <algorithm>
#include <map>

using namespace weft;
using namespace weft::schedule;

using Direction = StageAction::Direction;

std::string weft::schedule::describe(const StageAction &action) {
  return std::string(action.direction == Direction::Forward ? "forward" : "backward") +
         " of micro-batch " + std::to_string(action.microBatch) + " in stage " +
         std::to_string(action.stage);
}

/// Forward of the first `ahead` micro-batches comes before any backward.
static StageSchedule makeWithAhead(int64_t stages, int64_t microBatches,
                                   const std::function<int64_t(int64_t)> &aheadOf) {
  StageSchedule schedule(static_cast<size_t>(stages));
  for (int64_t stage = 0; stage < stages; ++stage) {
    std::vector<StageAction> &actions = schedule[static_cast<size_t>(stage)];
    int64_t ahead = std::min(aheadOf(stage), microBatches);
    for (int64_t step = 0; step < microBatches + ahead; ++step) {
      if (step < microBatches) {
        actions.push_back({stage, Direction::Forward, step});
      }
      if (step >= ahead) {
        actions.push_back({stage, Direction::Backward, step - ahead});
      }
    }
  }
  return schedule;
}

StageSchedule weft::schedule::makeGPipe(int64_t stages, int64_t microBatches) {
  // Forward of the last comes in the same step as backward of the first, before it.
  return makeWithAhead(stages, microBatches, [=](int64_t) { return microBatches - 1; });
}

StageSchedule weft::schedule::makeOneForwardOneBackward(int64_t stages, int64_t microBatches) {
  return makeWithAhead(stages, microBatches, [=](int64_t stage) { return stages - 1 - stage; });
}

std::optional<StageSchedule> weft::schedule::makeSchedule(std::string_view name, int64_t stages,
                                                          int64_t microBatches) {
  if (name == "gpipe") {
    return makeGPipe(stages, microBatches);
  }
  return name == "1f1b" ? std::optional(makeOneForwardOneBackward(stages, microBatches))
                        : std::nullopt;
}

double Course::bubble() const {
  double busy = 0;
  int64_t stages = 0;
  for (const TimedAction &each : actions) {
    busy += each.end - each.begin;
    stages = std::max(stages, each.action.stage + 1);
  }
  double whole = end * static_cast<double>(stages);
  return whole > 0 ? 1 - busy / whole : 0;
}

namespace {

/// Returns the action whose result `action` needs, if any.
std::optional<StageAction> neededBy(const StageAction &action, int64_t stages) {
  auto [stage, direction, microBatch] = action;
  if (direction == Direction::Forward) {
    return stage > 0 ? std::optional(StageAction{stage - 1, direction, microBatch}) : std::nullopt;
  }
  return stage + 1 < stages ? StageAction{stage + 1, direction, microBatch}
                            : StageAction{stage, Direction::Forward, microBatch};
}

/// Returns what is wrong with the lists, apart from their order; "" if nothing is.
std::string findFault(const StageSchedule &schedule, int64_t microBatches) {
  std::map<StageAction, int> counts;
  for (size_t stage = 0; stage < schedule.size(); ++stage) {
    for (const StageAction &action : schedule[stage]) {
      if (action.stage != static_cast<int64_t>(stage)) {
        return "stage " + std::to_string(stage) + " has " + describe(action);
      }
      if (action.microBatch < 0 || action.microBatch >= microBatches) {
        return describe(action) + ", expected micro-batches from 0 to " +
               std::to_string(microBatches - 1);
      }
      if (++counts[action] > 1) {
        return describe(action) + " is there twice";
      }
    }
  }
  for (int64_t stage = 0; stage < static_cast<int64_t>(schedule.size()); ++stage) {
    for (Direction direction : {Direction::Forward, Direction::Backward}) {
      for (int64_t number = 0; number < microBatches; ++number) {
        StageAction action = {stage, direction, number};
        if (!counts.contains(action)) {
          return describe(action) + " is missing";
        }
      }
    }
  }
  return "";
}

} // namespace

std::variant<Course, std::string>
weft::schedule::simulate(const StageSchedule &schedule, int64_t microBatches,
                         const std::function<double(const StageAction &)> &timeOf) {
  if (std::string fault = findFault(schedule, microBatches); !fault.empty()) {
    return fault;
  }
  auto stages = static_cast<int64_t>(schedule.size());
  std::map<StageAction, double> ends;
  std::vector<size_t> next(schedule.size(), 0);
  std::vector<double> free(schedule.size(), 0);
  Course course;
  bool isMoving = true;
  while (isMoving) {
    isMoving = false;
    for (size_t stage = 0; stage < schedule.size(); ++stage) {
      for (; next[stage] < schedule[stage].size(); ++next[stage]) {
        const StageAction &action = schedule[stage][next[stage]];
        std::optional<StageAction> needed = neededBy(action, stages);
        if (needed && !ends.contains(*needed)) {
          break;
        }
        double begin = std::max(free[stage], needed ? ends[*needed] : 0);
        free[stage] = ends[action] = begin + timeOf(action);
        course.actions.push_back({action, begin, free[stage]});
        course.end = std::max(course.end, free[stage]);
        isMoving = true;
      }
    }
  }
  for (size_t stage = 0; stage < schedule.size(); ++stage) {
    if (next[stage] < schedule[stage].size()) {
      const StageAction &action = schedule[stage][next[stage]];
      return describe(action) + " waits for " + describe(*neededBy(action, stages)) +
             ", which never begins";
    }
  }
  std::ranges::sort(course.actions, {}, [](const TimedAction &each) {
    return std::pair(each.begin, each.action.stage);
  });
  return course;
}
