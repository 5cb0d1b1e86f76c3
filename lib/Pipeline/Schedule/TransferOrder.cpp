//===- TransferOrder.cpp - when pipeline stages exchange values ------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Pipeline/Schedule/TransferOrder.h"

#include <algorithm>
#include <map>
#include <queue>

using namespace weft;
using desc::StageAction;

namespace {

class Exchange {
public:
  Exchange(const desc::StageSchedule &schedule, const std::vector<ActionTransfer> &transfers,
           const std::function<double(const StageAction &)> &timeOf)
      : schedule(schedule), transfers(transfers), timeOf(timeOf), stages(schedule.size()) {
    for (size_t number = 0; number < transfers.size(); ++number) {
      ++missing[transfers[number].user];
      made[transfers[number].maker].push_back(number);
    }
    takesEarly = desc::stagesOfChunks(schedule).size() > schedule.size() ||
                 !desc::chunksWithParts(schedule).empty();
  }

  std::optional<std::vector<StageEvent>> run() {
    for (size_t stage = 0; stage < stages.size(); ++stage) {
      visitAt(0, stage);
    }
    while (!visits.empty()) {
      auto [time, stage] = visits.top();
      visits.pop();
      if (time >= stages[stage].free) {
        visit(stage, time);
      }
    }
    bool isDone = events.size() == transfers.size() + countActions();
    return isDone ? std::optional(std::move(events)) : std::nullopt;
  }

private:
  struct Stage {
    /// How many of its actions have begun, and when it is done with the last.
    size_t next = 0;
    double free = 0;
    /// It waits, and can exchange values.
    bool isWaiting = false;
    /// Transfers of what it has made, or another makes for it.
    std::vector<size_t> open;
  };

  void visitAt(double time, size_t stage) { visits.emplace(time, stage); }

  size_t countActions() const {
    size_t count = 0;
    for (const std::vector<StageAction> &actions : schedule) {
      count += actions.size();
    }
    return count;
  }

  size_t partnerOf(size_t number, size_t stage) const {
    const ActionTransfer &transfer = transfers[number];
    return size_t(transfer.from) == stage ? size_t(transfer.to) : size_t(transfer.from);
  }

  const StageAction *nextOf(size_t stage) const {
    size_t next = stages[stage].next;
    return next < schedule[stage].size() ? &schedule[stage][next] : nullptr;
  }

  /// Returns true if the receiver needs the value for its next action.
  bool isNeeded(size_t number) const {
    const StageAction *next = nextOf(size_t(transfers[number].to));
    return next && *next == transfers[number].user;
  }

  void visit(size_t stage, double time);
  std::optional<size_t> findPartner(size_t stage, double time) const;
  void exchange(size_t number, double time);
  std::optional<double> waitsUntil(size_t stage, double time, double length) const;
  void begin(size_t stage, double time, double length);

  const desc::StageSchedule &schedule;
  const std::vector<ActionTransfer> &transfers;
  const std::function<double(const StageAction &)> &timeOf;
  std::vector<Stage> stages;
  bool takesEarly = false;
  /// The transfers of what an action makes, and how many it still waits for.
  std::map<StageAction, std::vector<size_t>> made;
  std::map<StageAction, size_t> missing;
  /// When a stage decides what to do, the earliest first.
  using Visit = std::pair<double, size_t>;
  std::priority_queue<Visit, std::vector<Visit>, std::greater<>> visits;
  std::vector<StageEvent> events;
};

void Exchange::visit(size_t stage, double time) {
  if (std::optional<size_t> number = findPartner(stage, time)) {
    return exchange(*number, time);
  }
  stages[stage].isWaiting = true;
  const StageAction *next = nextOf(stage);
  auto waited = next ? missing.find(*next) : missing.end();
  if (!next || (waited != missing.end() && waited->second > 0)) {
    return; // Its partner exchanges with it.
  }
  double length = timeOf(*next);
  if (std::optional<double> until = waitsUntil(stage, time, length)) {
    stages[stage].free = time;
    visitAt(*until, stage);
  } else {
    begin(stage, time, length);
  }
}

/// Returns the transfer that `stage` does at `time` with a partner that waits: first one that is
/// needed next, and of these what backward makes, after which a micro-batch needs less.
std::optional<size_t> Exchange::findPartner(size_t stage, double time) const {
  std::optional<size_t> best;
  auto rankOf = [&](size_t number) {
    return std::pair(isNeeded(number), transfers[number].maker.isOfBackward());
  };
  for (size_t number : stages[stage].open) {
    const Stage &partner = stages[partnerOf(number, stage)];
    bool isThere = partner.free == time || (partner.free < time && partner.isWaiting);
    bool isTaken = isThere && (takesEarly || isNeeded(number));
    if (isTaken && (!best || rankOf(number) > rankOf(*best))) {
      best = number;
    }
  }
  return best;
}

void Exchange::exchange(size_t number, double time) {
  events.push_back({{}, number});
  const ActionTransfer &transfer = transfers[number];
  --missing[transfer.user];
  for (size_t stage : {size_t(transfer.from), size_t(transfer.to)}) {
    std::erase(stages[stage].open, number);
    stages[stage].free = time + 1;
    stages[stage].isWaiting = false;
    visitAt(time + 1, stage);
  }
}

/// Returns when a receiver is done with its action that then needs a value of `stage`, if it would
/// wait longer for the end of the next action of `stage` than this for it.
std::optional<double> Exchange::waitsUntil(size_t stage, double time, double length) const {
  std::optional<double> until;
  for (size_t number : stages[stage].open) {
    const double ready = stages[size_t(transfers[number].to)].free;
    bool isSender = size_t(transfers[number].from) == stage;
    if (isSender && isNeeded(number) && ready > time && ready - time < time + length - ready) {
      until = std::min(until.value_or(ready), ready);
    }
  }
  return until;
}

void Exchange::begin(size_t stage, double time, double length) {
  const StageAction &action = *nextOf(stage);
  events.push_back({action});
  Stage &own = stages[stage];
  ++own.next;
  own.free = time + length;
  own.isWaiting = false;
  visitAt(own.free, stage);
  if (auto results = made.find(action); results != made.end()) {
    for (size_t number : results->second) {
      own.open.push_back(number);
      stages[size_t(transfers[number].to)].open.push_back(number);
    }
  }
}

} // namespace

std::optional<std::vector<StageEvent>>
weft::orderTransfers(const desc::StageSchedule &schedule,
                     const std::vector<ActionTransfer> &transfers,
                     const std::function<double(const StageAction &)> &timeOf) {
  return Exchange(schedule, transfers, timeOf).run();
}
