//===- StageLists.cpp - the actions of each stage, checked ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StageLists.h"

#include <map>

using namespace weft;
using namespace weft::desc;

using Kind = StageAction::Kind;

namespace {

/// Checks where the parameters of one chunk are gathered, and its gradients reduced.
class GatherCheck {
public:
  /// `hasGathers`: the chunk's stage gathers its parameters where the schedule says.
  explicit GatherCheck(bool hasGathers) : hasGathers(hasGathers) {}

  /// Takes the chunk's next action. Returns what is wrong with it, to be read behind its name.
  std::string take(const StageAction &action) {
    switch (action.kind) {
    case Kind::Forward:
    case Kind::Backward:
    case Kind::InputGradients:
      return use();
    case Kind::WeightGradients:
      return isReduced ? kIsReduced : "";
    case Kind::Unshard:
      return gather(action);
    case Kind::Reshard:
      return reshard();
    case Kind::ReduceGrad:
      return reduce();
    }
    return "";
  }

  /// Returns the action that gathers what nothing uses, if the last one does.
  std::optional<StageAction> unused() const { return isUsed ? std::nullopt : gathered; }

private:
  static constexpr const char *kIsReduced =
      " comes after REDUCE_GRAD of the chunk, which would miss its gradients";

  std::string use() {
    isUsed = true;
    if (isReduced) {
      return kIsReduced;
    }
    if (!hasGathers || gathered) {
      return "";
    }
    return wasGathered ? " comes after RESHARD of the chunk, and no UNSHARD stands between"
                       : " comes before any UNSHARD of the chunk";
  }

  std::string gather(const StageAction &action) {
    if (!isUsed) {
      return " is there twice, and no forward or backward of the chunk stands between";
    }
    gathered = action;
    wasGathered = true;
    isUsed = false;
    return "";
  }

  std::string reshard() {
    if (!gathered) {
      return " comes without UNSHARD before it";
    }
    if (!isUsed) {
      return " comes right after UNSHARD, and no forward or backward of the chunk stands between";
    }
    gathered.reset();
    return "";
  }

  std::string reduce() {
    if (isReduced) {
      return " is there twice";
    }
    isReduced = true;
    return "";
  }

  const bool hasGathers;
  bool isReduced = false, wasGathered = false, isUsed = true;
  /// The action that has gathered what the chunk may use.
  std::optional<StageAction> gathered;
};

/// The parts of a chunk's work on a micro-batch. Each is done for one micro-batch after the other:
/// the last two add to sums over them.
enum class Part : uint8_t { Forward, InputGradients, WeightGradients };

/// Returns the action by which the part is named where it is missing.
Kind kindOf(Part part) {
  return part == Part::Forward          ? Kind::Forward
         : part == Part::InputGradients ? Kind::Backward
                                        : Kind::WeightGradients;
}

/// Checks the lists of a schedule, apart from their order.
class ListCheck {
public:
  ListCheck(const StageSchedule &schedule, int64_t microBatches)
      : schedule(schedule), microBatches(microBatches) {
    for (size_t stage = 0; stage < schedule.size(); ++stage) {
      for (const StageAction &action : schedule[stage]) {
        if (action.isOfMicroBatch()) {
          stages.try_emplace(action.chunk, static_cast<int64_t>(stage));
        }
      }
    }
  }

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
    std::optional<ScheduleFault> fault = findMissing(purpose);
    return fault ? fault : findMisplacedGather();
  }

private:
  std::string faultOf(const StageAction &action, int64_t stage) {
    if (int64_t first = stages.try_emplace(action.chunk, stage).first->second; first != stage) {
      return " is in stage " + std::to_string(stage) + ", expected stage " + std::to_string(first) +
             ", which has other actions of that chunk";
    }
    if (!action.isOfMicroBatch()) {
      return "";
    }
    if (action.microBatch < 0 || action.microBatch >= microBatches) {
      return ", expected micro-batches from 0 to " + std::to_string(microBatches - 1);
    }
    std::string text = action.kind == Kind::Forward ? take(action, Part::Forward) : "";
    if (text.empty() && action.givesInputGradients()) {
      text = take(action, Part::InputGradients);
    }
    if (text.empty() && action.givesWeightGradients()) {
      text = take(action, Part::WeightGradients);
    }
    return text;
  }

  /// Counts the part of the work on a micro-batch that the action does.
  std::string take(const StageAction &action, Part part) {
    std::vector<Kind> &kinds = done[{action.chunk, part}];
    const auto next = static_cast<int64_t>(kinds.size());
    if (action.microBatch < next) {
      const StageAction other = {action.chunk, kinds[static_cast<size_t>(action.microBatch)],
                                 action.microBatch};
      return other == action ? " is there twice" : " comes after " + describe(other);
    }
    if (action.kind == Kind::WeightGradients &&
        action.microBatch >= countDone(action.chunk, Part::InputGradients)) {
      return " comes before " + describe({action.chunk, Kind::InputGradients, action.microBatch});
    }
    if (action.microBatch > next) {
      const bool isOwn = action.kind != Kind::Backward || part != Part::WeightGradients;
      return " comes before " +
             (isOwn ? "that of micro-batch " + std::to_string(next)
                    : describe({action.chunk, kindOf(part), next})) +
             ", but sums over micro-batches have their order";
    }
    kinds.push_back(action.kind);
    return "";
  }

  std::optional<ScheduleFault> findMissing(SchedulePurpose purpose) const {
    const int64_t chunks = stages.empty() ? 0 : stages.rbegin()->first + 1;
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      auto stage = stages.find(chunk);
      for (Part part : {Part::Forward, Part::InputGradients, Part::WeightGradients}) {
        bool isNeeded = part == Part::Forward || purpose == SchedulePurpose::Training;
        if (int64_t next = countDone(chunk, part); isNeeded && next < microBatches) {
          return ScheduleFault{stage == stages.end() ? 0 : stage->second,
                               describe({chunk, kindOf(part), next}) + " is missing"};
        }
      }
    }
    return std::nullopt;
  }

  int64_t countDone(int64_t chunk, Part part) const {
    auto own = done.find({chunk, part});
    return own == done.end() ? 0 : static_cast<int64_t>(own->second.size());
  }

  std::optional<ScheduleFault> findMisplacedGather() const {
    std::map<int64_t, bool> hasGathers;
    for (const std::vector<StageAction> &actions : schedule) {
      for (const StageAction &action : actions) {
        hasGathers[action.chunk] |= action.kind == Kind::Unshard || action.kind == Kind::Reshard;
      }
    }
    std::map<int64_t, GatherCheck> checks;
    for (size_t stage = 0; stage < schedule.size(); ++stage) {
      for (const StageAction &action : schedule[stage]) {
        GatherCheck &check =
            checks.try_emplace(action.chunk, hasGathers[action.chunk]).first->second;
        if (std::string text = check.take(action); !text.empty()) {
          return ScheduleFault{static_cast<int64_t>(stage), describe(action) + text};
        }
      }
    }
    for (const auto &[chunk, check] : checks) {
      if (std::optional<StageAction> last = check.unused()) {
        return ScheduleFault{stages.at(chunk),
                             describe(*last) + " comes last, and nothing uses what it gathers"};
      }
    }
    return std::nullopt;
  }

  const StageSchedule &schedule;
  const int64_t microBatches;
  /// The stage of each chunk: the first with forward or backward of it.
  std::map<int64_t, int64_t> stages;
  /// The actions that did each part of each chunk's work, one for each micro-batch, in order.
  std::map<std::pair<int64_t, Part>, std::vector<Kind>> done;
};

} // namespace

std::optional<ScheduleFault> weft::desc::detail::faultOfLists(const StageSchedule &schedule,
                                                              int64_t microBatches,
                                                              SchedulePurpose purpose) {
  return ListCheck(schedule, microBatches).run(purpose);
}
