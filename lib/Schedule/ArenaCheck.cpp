//===- ArenaCheck.cpp - the sweep that checks every packing ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Deliberately shares no code with the packer.
//
//===----------------------------------------------------------------------===//

#include "weft/Schedule/Arena.h"

#include <algorithm>
#include <map>

using namespace weft::schedule;

namespace {

/// The begin or the end of a buffer's lifetime. At one instant begins come first, since lifetimes
/// include both of their ends.
struct Event {
  int64_t time;
  bool isEnd;
  uint32_t buffer;
  bool operator<(const Event &other) const {
    if (time != other.time) {
      return time < other.time;
    }
    return isEnd != other.isEnd ? !isEnd : buffer < other.buffer;
  }
};

/// The needed buffers of one instant by offset; no two of them share bytes.
using LiveSet = std::map<uint64_t, uint32_t>;

class Sweep {
public:
  Sweep(const ArenaProblem &problem, const ArenaPlan &plan) : problem(problem), plan(plan) {}

  std::vector<ArenaFault> run() {
    checkPlaces();
    if (faults.empty()) {
      checkOverlaps();
    }
    return std::move(faults);
  }

private:
  void checkPlaces() {
    if (plan.offsets.size() != problem.buffers.size()) {
      faults.push_back({ArenaFault::Kind::WrongCount});
      return;
    }
    for (uint32_t i = 0; i < plan.offsets.size(); ++i) {
      if (plan.offsets[i] % problem.alignment != 0) {
        faults.push_back({ArenaFault::Kind::Misaligned, i});
      }
      if (problem.buffers[i].isNeeded() &&
          (problem.buffers[i].bytes > plan.bytes ||
           plan.offsets[i] > plan.bytes - problem.buffers[i].bytes)) {
        faults.push_back({ArenaFault::Kind::BeyondArena, i});
      }
    }
  }

  void checkOverlaps() {
    std::vector<Event> events;
    events.reserve(2 * problem.buffers.size());
    for (uint32_t i = 0; i < problem.buffers.size(); ++i) {
      if (problem.buffers[i].isNeeded()) {
        events.push_back({problem.buffers[i].first, false, i});
        events.push_back({problem.buffers[i].last, true, i});
      }
    }
    std::sort(events.begin(), events.end());
    for (const Event &event : events) {
      event.isEnd ? leave(event.buffer) : enter(event.buffer);
    }
  }

  uint64_t endOf(uint32_t buffer) const {
    return plan.offsets[buffer] + problem.buffers[buffer].bytes;
  }

  /// Live intervals are disjoint, so only the two neighbours by address can overlap.
  void enter(uint32_t buffer) {
    auto next = live.lower_bound(plan.offsets[buffer]);
    if (next != live.end() && next->first < endOf(buffer)) {
      faults.push_back({ArenaFault::Kind::Overlap, next->second, buffer});
      return;
    }
    if (next != live.begin()) {
      auto previous = std::prev(next);
      if (endOf(previous->second) > plan.offsets[buffer]) {
        faults.push_back({ArenaFault::Kind::Overlap, previous->second, buffer});
        return;
      }
    }
    live.emplace_hint(next, plan.offsets[buffer], buffer);
  }

  void leave(uint32_t buffer) {
    // A buffer with a reported overlap was not inserted.
    auto it = live.find(plan.offsets[buffer]);
    if (it != live.end() && it->second == buffer) {
      live.erase(it);
    }
  }

  const ArenaProblem &problem;
  const ArenaPlan &plan;
  LiveSet live;
  std::vector<ArenaFault> faults;
};

} // namespace

std::vector<ArenaFault> weft::schedule::checkArena(const ArenaProblem &problem,
                                                   const ArenaPlan &plan) {
  return Sweep(problem, plan).run();
}

std::string weft::schedule::toText(const ArenaFault &fault) {
  return toText(fault, [](uint32_t number) { return "buffer " + std::to_string(number); });
}

std::string weft::schedule::toText(const ArenaFault &fault,
                                   const std::function<std::string(uint32_t)> &nameOf) {
  std::string buffer = nameOf(fault.buffer);
  switch (fault.kind) {
  case ArenaFault::Kind::WrongCount:
    return "the plan's number of offsets differs from the number of buffers";
  case ArenaFault::Kind::Misaligned:
    return buffer + " does not begin at a multiple of the alignment";
  case ArenaFault::Kind::BeyondArena:
    return buffer + " ends beyond the arena";
  case ArenaFault::Kind::Overlap:
    return buffer + " and " + nameOf(fault.other) + " overlap in space and time";
  }
  return buffer;
}
