//===- StageOrder.cpp - the order of a pipeline's actions ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Description/StageOrder.h"

#include "StageLists.h"

#include <algorithm>
#include <map>
#include <set>

using namespace weft;
using namespace weft::desc;

using Kind = StageAction::Kind;

std::string weft::desc::describe(const StageAction &action) {
  const std::string chunk = "chunk " + std::to_string(action.chunk);
  auto ofMicroBatch = [&](const char *what) {
    return what + (" of micro-batch " + std::to_string(action.microBatch)) + " in " + chunk;
  };
  switch (action.kind) {
  case Kind::Forward:
    return ofMicroBatch("forward");
  case Kind::Backward:
    return ofMicroBatch("backward");
  case Kind::InputGradients:
    return ofMicroBatch("input gradient");
  case Kind::WeightGradients:
    return ofMicroBatch("weight gradient");
  case Kind::Unshard:
    return "UNSHARD of " + chunk;
  case Kind::Reshard:
    return "RESHARD of " + chunk;
  case Kind::ReduceGrad:
    return "REDUCE_GRAD of " + chunk;
  }
  return "";
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
        forward.push_back({i * stages + stage, Kind::Forward, number});
        backward.push_back({(chunks - 1 - i) * stages + stage, Kind::Backward, number});
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
  if (name == "zbh1" && chunks == 1) {
    return makeZeroBubbleH1(stages, microBatches);
  }
  if (name == "zbv" && chunks == 2) {
    return makeZeroBubbleV(stages, microBatches);
  }
  return name == "1f1b" ? std::optional(makeOneForwardOneBackward(stages, chunks, microBatches))
                        : std::nullopt;
}

std::vector<int64_t> weft::desc::chunksWithParts(const StageSchedule &schedule) {
  std::set<int64_t> found;
  for (const std::vector<StageAction> &actions : schedule) {
    for (const StageAction &action : actions) {
      if (action.isOfBackward() && action.kind != Kind::Backward) {
        found.insert(action.chunk);
      }
    }
  }
  return {found.begin(), found.end()};
}

std::vector<int64_t> weft::desc::stagesOfChunks(const StageSchedule &schedule) {
  std::map<int64_t, int64_t> stages;
  for (size_t stage = 0; stage < schedule.size(); ++stage) {
    for (const StageAction &action : schedule[stage]) {
      if (action.isOfMicroBatch()) {
        stages.try_emplace(action.chunk, static_cast<int64_t>(stage));
      }
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

/// Knows which actions wait for which.
class Needs {
public:
  explicit Needs(const StageSchedule &schedule)
      : chunks(static_cast<int64_t>(stagesOfChunks(schedule).size())) {
    for (const std::vector<StageAction> &actions : schedule) {
      for (const StageAction &action : actions) {
        if (action.kind == Kind::InputGradients) {
          cut.insert({action.chunk, action.microBatch});
        }
      }
    }
  }

  /// Returns the action of another chunk, or of the same, whose result `action` needs, if any.
  /// Gradients of weights stand behind those of inputs, which they need, in the list of their
  /// stage.
  std::optional<StageAction> of(const StageAction &action) const {
    const auto [chunk, kind, microBatch] = action;
    if (kind == Kind::Forward) {
      return chunk > 0 ? std::optional(StageAction{chunk - 1, kind, microBatch}) : std::nullopt;
    }
    if (!action.givesInputGradients()) {
      return std::nullopt;
    }
    if (chunk + 1 == chunks) {
      return StageAction{chunk, Kind::Forward, microBatch};
    }
    const bool isCut = cut.contains({chunk + 1, microBatch});
    return StageAction{chunk + 1, isCut ? Kind::InputGradients : Kind::Backward, microBatch};
  }

private:
  const int64_t chunks;
  /// The chunks and micro-batches whose backward is in two parts.
  std::set<std::pair<int64_t, int64_t>> cut;
};

} // namespace

std::variant<Course, ScheduleFault>
weft::desc::simulate(const StageSchedule &schedule, int64_t microBatches,
                     const std::function<double(const StageAction &)> &timeOf,
                     SchedulePurpose purpose) {
  if (std::optional<ScheduleFault> fault = detail::faultOfLists(schedule, microBatches, purpose)) {
    return *fault;
  }
  const Needs needs(schedule);
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
        std::optional<StageAction> needed = needs.of(action);
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
                                                            describe(*needs.of(action)) +
                                                            ", which never begins"};
    }
  }
  std::ranges::sort(course.actions, {},
                    [](const TimedAction &each) { return std::pair(each.begin, each.stage); });
  return course;
}
