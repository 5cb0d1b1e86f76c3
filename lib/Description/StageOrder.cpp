//===- StageOrder.cpp - the order of a pipeline's actions ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Description/StageOrder.h"

#include <algorithm>
#include <map>

using namespace weft;
using namespace weft::desc;

using Direction = StageAction::Direction;

std::string weft::desc::describe(const StageAction &action) {
  return std::string(action.direction == Direction::Forward ? "forward" : "backward") +
         " of micro-batch " + std::to_string(action.microBatch) + " in chunk " +
         std::to_string(action.chunk);
}

/// Returns the actions of a stage that does forward of `ahead` more micro-batches than backward, as
/// long as there are some. They pass its chunks in `groups` of about equal size, one after another.
static std::vector<StageAction> actionsOf(int64_t stage, int64_t stages, int64_t chunks,
                                          int64_t microBatches, int64_t groups, int64_t ahead) {
  std::vector<StageAction> forward, backward;
  for (int64_t group = 0; group < groups; ++group) {
    const int64_t begin = microBatches * group / groups, end = microBatches * (group + 1) / groups;
    for (int64_t i = 0; i < chunks; ++i) {
      for (int64_t number = begin; number < end; ++number) {
        forward.push_back({i * stages + stage, Direction::Forward, number});
        backward.push_back({(chunks - 1 - i) * stages + stage, Direction::Backward, number});
      }
    }
  }
  std::vector<StageAction> actions;
  const auto count = static_cast<int64_t>(forward.size());
  ahead = std::min(ahead, count);
  for (int64_t step = 0; step < count + ahead; ++step) {
    if (step < count) {
      actions.push_back(forward[static_cast<size_t>(step)]);
    }
    if (step >= ahead) {
      actions.push_back(backward[static_cast<size_t>(step - ahead)]);
    }
  }
  return actions;
}

StageSchedule weft::desc::makeGPipe(int64_t stages, int64_t chunks, int64_t microBatches) {
  StageSchedule schedule;
  for (int64_t stage = 0; stage < stages; ++stage) {
    // Forward of the last comes in the same step as backward of the first, before it.
    schedule.push_back(
        actionsOf(stage, stages, chunks, microBatches, 1, chunks * microBatches - 1));
  }
  return schedule;
}

StageSchedule weft::desc::makeOneForwardOneBackward(int64_t stages, int64_t chunks,
                                                    int64_t microBatches) {
  const int64_t groups = std::max<int64_t>(1, microBatches / stages);
  const int64_t largest = (microBatches + groups - 1) / groups;
  StageSchedule schedule;
  for (int64_t stage = 0; stage < stages; ++stage) {
    const int64_t behind = stages - 1 - stage;
    // With several chunks a micro-batch comes back through the last of them, and each stage on the
    // way is busy with another one half of the time.
    const int64_t ahead = chunks == 1 ? behind : 2 * behind + (chunks - 1) * largest;
    schedule.push_back(actionsOf(stage, stages, chunks, microBatches, groups, ahead));
  }
  return schedule;
}

std::optional<StageSchedule> weft::desc::makeSchedule(std::string_view name, int64_t stages,
                                                      int64_t chunks, int64_t microBatches) {
  if (name == "gpipe") {
    return makeGPipe(stages, chunks, microBatches);
  }
  return name == "1f1b" ? std::optional(makeOneForwardOneBackward(stages, chunks, microBatches))
                        : std::nullopt;
}

StageSchedule weft::desc::forwardOf(const StageSchedule &schedule, int64_t microBatches) {
  StageSchedule forward = schedule;
  for (std::vector<StageAction> &actions : forward) {
    std::erase_if(actions, [=](const StageAction &action) {
      return action.direction == Direction::Backward || action.microBatch >= microBatches;
    });
  }
  return forward;
}

std::vector<int64_t> weft::desc::stagesOfChunks(const StageSchedule &schedule) {
  std::map<int64_t, int64_t> stages;
  for (size_t stage = 0; stage < schedule.size(); ++stage) {
    for (const StageAction &action : schedule[stage]) {
      stages.try_emplace(action.chunk, static_cast<int64_t>(stage));
    }
  }
  std::vector<int64_t> list;
  for (const auto &[chunk, stage] : stages) {
    list.push_back(stage);
  }
  return list;
}

double Course::bubble() const {
  double busy = 0;
  int64_t stages = 0;
  for (const TimedAction &each : actions) {
    busy += each.end - each.begin;
    stages = std::max(stages, each.stage + 1);
  }
  double whole = end * static_cast<double>(stages);
  return whole > 0 ? 1 - busy / whole : 0;
}

namespace {

/// Checks the lists of a schedule, apart from their order.
class ListCheck {
public:
  ListCheck(const StageSchedule &schedule, int64_t microBatches)
      : schedule(schedule), microBatches(microBatches) {}

  std::optional<ScheduleFault> run(SchedulePurpose purpose) {
    for (size_t stage = 0; stage < schedule.size(); ++stage) {
      if (schedule[stage].empty()) {
        return ScheduleFault{static_cast<int64_t>(stage),
                             "stage " + std::to_string(stage) + " has no actions"};
      }
      for (const StageAction &action : schedule[stage]) {
        if (std::string text = faultOf(action, static_cast<int64_t>(stage)); !text.empty()) {
          return ScheduleFault{static_cast<int64_t>(stage), describe(action) + text};
        }
      }
    }
    return findMissing(purpose);
  }

  int64_t countChunks() const { return stages.empty() ? 0 : stages.rbegin()->first + 1; }

private:
  std::string faultOf(const StageAction &action, int64_t stage) {
    if (action.microBatch < 0 || action.microBatch >= microBatches) {
      return ", expected micro-batches from 0 to " + std::to_string(microBatches - 1);
    }
    if (int64_t first = stages.try_emplace(action.chunk, stage).first->second; first != stage) {
      return " is in stage " + std::to_string(stage) + ", expected stage " + std::to_string(first) +
             ", which has other actions of that chunk";
    }
    int64_t &next = done[{action.chunk, action.direction}];
    if (action.microBatch != next) {
      return action.microBatch < next
                 ? " is there twice"
                 : " comes before that of micro-batch " + std::to_string(next) +
                       ", but sums over micro-batches have their order";
    }
    ++next;
    return "";
  }

  std::optional<ScheduleFault> findMissing(SchedulePurpose purpose) const {
    for (int64_t chunk = 0; chunk < countChunks(); ++chunk) {
      auto stage = stages.find(chunk);
      for (Direction direction : {Direction::Forward, Direction::Backward}) {
        bool isNeeded = direction == Direction::Forward || purpose == SchedulePurpose::Training;
        auto own = done.find({chunk, direction});
        int64_t next = own == done.end() ? 0 : own->second;
        if (isNeeded && next < microBatches) {
          return ScheduleFault{stage == stages.end() ? 0 : stage->second,
                               describe({chunk, direction, next}) + " is missing"};
        }
      }
    }
    return std::nullopt;
  }

  const StageSchedule &schedule;
  const int64_t microBatches;
  /// The stage of each chunk.
  std::map<int64_t, int64_t> stages;
  /// Of each chunk and direction, how many micro-batches have come.
  std::map<std::pair<int64_t, Direction>, int64_t> done;
};

/// Returns the action whose result `action` needs, if any.
std::optional<StageAction> neededBy(const StageAction &action, int64_t chunks) {
  auto [chunk, direction, microBatch] = action;
  if (direction == Direction::Forward) {
    return chunk > 0 ? std::optional(StageAction{chunk - 1, direction, microBatch}) : std::nullopt;
  }
  return chunk + 1 < chunks ? StageAction{chunk + 1, direction, microBatch}
                            : StageAction{chunk, Direction::Forward, microBatch};
}

} // namespace

std::variant<Course, ScheduleFault>
weft::desc::simulate(const StageSchedule &schedule, int64_t microBatches,
                     const std::function<double(const StageAction &)> &timeOf,
                     SchedulePurpose purpose) {
  ListCheck check(schedule, microBatches);
  if (std::optional<ScheduleFault> fault = check.run(purpose)) {
    return *fault;
  }
  const int64_t chunks = check.countChunks();
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
        std::optional<StageAction> needed = neededBy(action, chunks);
        if (needed && !ends.contains(*needed)) {
          break;
        }
        double begin = std::max(free[stage], needed ? ends[*needed] : 0);
        free[stage] = ends[action] = begin + timeOf(action);
        course.actions.push_back({action, static_cast<int64_t>(stage), begin, free[stage]});
        course.end = std::max(course.end, free[stage]);
        isMoving = true;
      }
    }
  }
  for (size_t stage = 0; stage < schedule.size(); ++stage) {
    if (next[stage] < schedule[stage].size()) {
      const StageAction &action = schedule[stage][next[stage]];
      return ScheduleFault{static_cast<int64_t>(stage), describe(action) + " waits for " +
                                                            describe(*neededBy(action, chunks)) +
                                                            ", which never begins"};
    }
  }
  std::ranges::sort(course.actions, {},
                    [](const TimedAction &each) { return std::pair(each.begin, each.stage); });
  return course;
}
