//===- StageGathers.cpp - where stages gather parameters ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StageLists.h"

#include <algorithm>
#include <map>

using namespace weft;
using namespace weft::desc;

using Kind = StageAction::Kind;

constexpr std::string_view kPeriods[] = {"step", "run", "micro-batch"};

std::optional<GatherPeriod> weft::desc::makeGatherPeriod(std::string_view name) {
  const auto *found = std::ranges::find(kPeriods, name);
  return found == std::end(kPeriods) ? std::nullopt
                                     : std::optional(GatherPeriod(found - std::begin(kPeriods)));
}

std::string_view weft::desc::nameOf(GatherPeriod period) { return kPeriods[size_t(period)]; }

void weft::desc::detail::numberGathers(std::vector<StageAction> &actions) {
  std::map<std::pair<int64_t, Kind>, int64_t> counts;
  for (StageAction &action : actions) {
    if (!action.isOfMicroBatch()) {
      action.microBatch = counts[{action.chunk, action.kind}]++;
    }
  }
}

/// Returns the first action from place `begin` on that uses parameters; null if there is none.
static const StageAction *nextUser(const std::vector<StageAction> &actions, size_t begin) {
  auto found = std::find_if(actions.begin() + static_cast<ptrdiff_t>(begin), actions.end(),
                            [](const StageAction &action) { return action.usesParameters(); });
  return found == actions.end() ? nullptr : &*found;
}

StageSchedule weft::desc::withGathers(const StageSchedule &schedule, GatherPeriod period) {
  if (period == GatherPeriod::Step) {
    return schedule;
  }
  StageSchedule made;
  for (const std::vector<StageAction> &actions : schedule) {
    std::vector<StageAction> &own = made.emplace_back();
    const StageAction *last = nullptr;
    auto isTogether = [&](const StageAction &a, const StageAction &b) {
      return period == GatherPeriod::Run && a.chunk == b.chunk;
    };
    for (size_t i = 0; i < actions.size(); ++i) {
      if (!actions[i].usesParameters()) {
        own.push_back(actions[i]);
        continue;
      }
      const StageAction *next = nextUser(actions, i + 1);
      if (!last || !isTogether(*last, actions[i])) {
        own.push_back({actions[i].chunk, Kind::Unshard});
      }
      own.push_back(actions[i]);
      if (!next || !isTogether(actions[i], *next)) {
        own.push_back({actions[i].chunk, Kind::Reshard});
      }
      last = &actions[i];
    }
    detail::numberGathers(own);
  }
  return made;
}

/// Removes UNSHARD where nothing uses what it gathers, and then the RESHARD behind it.
static void eraseUnused(std::vector<StageAction> &actions) {
  std::vector<StageAction> kept;
  // The place of the UNSHARD of each chunk that nothing has used so far.
  std::map<int64_t, size_t> unused;
  auto erase = [&](int64_t chunk) {
    auto found = unused.find(chunk);
    if (found == unused.end()) {
      return false;
    }
    const size_t place = found->second;
    kept.erase(kept.begin() + static_cast<ptrdiff_t>(place));
    unused.erase(found);
    for (auto &[other, own] : unused) {
      own -= own > place ? 1 : 0;
    }
    return true;
  };
  for (const StageAction &action : actions) {
    if (action.usesParameters()) {
      unused.erase(action.chunk);
    } else if ((action.kind == Kind::Unshard || action.kind == Kind::Reshard) &&
               erase(action.chunk) && action.kind == Kind::Reshard) {
      continue;
    }
    if (action.kind == Kind::Unshard) {
      unused[action.chunk] = kept.size();
    }
    kept.push_back(action);
  }
  while (!unused.empty()) {
    erase(unused.begin()->first);
  }
  actions = std::move(kept);
}

StageSchedule weft::desc::withoutGathers(const StageSchedule &schedule) {
  StageSchedule made = schedule;
  for (std::vector<StageAction> &actions : made) {
    std::erase_if(actions, [](const StageAction &action) {
      return action.kind == Kind::Unshard || action.kind == Kind::Reshard;
    });
  }
  return made;
}

StageSchedule weft::desc::firstOf(const StageSchedule &schedule, int64_t microBatches) {
  StageSchedule first = schedule;
  for (std::vector<StageAction> &actions : first) {
    std::erase_if(actions, [=](const StageAction &action) {
      return action.isOfMicroBatch() && action.microBatch >= microBatches;
    });
    eraseUnused(actions);
    detail::numberGathers(actions);
  }
  return first;
}

StageSchedule weft::desc::forwardOf(const StageSchedule &schedule, int64_t microBatches) {
  StageSchedule forward = schedule;
  for (std::vector<StageAction> &actions : forward) {
    std::erase_if(actions, [](const StageAction &action) {
      return action.isOfBackward() || action.kind == Kind::ReduceGrad;
    });
  }
  return firstOf(forward, microBatches);
}
