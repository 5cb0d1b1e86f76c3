//===- StreamOrder.cpp - which collectives run beside computation, and when ===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// First, ops that only unpack or observe the result of a collective move to its first use,
// if that takes no memory. Then the collectives for the communication stream are chosen;
// each gets the instruction that it is to precede, and all move at once.
//
// All-gathers get their places by a walk back through time: from the first use of the
// gathered value, past the times at which other collectives occupy the links.
//
//===----------------------------------------------------------------------===//

#include "Dependences.h"

#include "weft/Schedule/Streams.h"

#include <algorithm>
#include <limits>
#include <tuple>

using namespace weft;
using namespace weft::schedule;

namespace {

/// The limit of kernels that prepare one shard and move with it.
constexpr size_t kMaxPreparing = 32;

/// An all-gather on the communication stream; instructions are given by number.
struct Gather {
  uint32_t number, firstUse, lastUse;
  /// The first instruction that it may precede.
  uint32_t earliest;
  /// The instruction that it is to precede.
  uint32_t at;
  uint64_t bytes;
  /// Kernels that move with it: their operands exist from the beginning.
  std::vector<uint32_t> preparing;
};

/// A time in which a collective occupies the links.
struct Busy {
  double begin, end;
};

/// The new place of an instruction: right before instruction `at`, or in its place.
struct Place {
  uint32_t at;
  bool isThere;
  uint32_t number;
  auto operator<=>(const Place &) const = default;
};

class Orderer {
public:
  Orderer(const rt::Program &program, std::vector<rt::Instruction> &body, double leastGain)
      : program(program), body(body), leastGain(leastGain) {}

  void run() {
    std::vector<rt::Instruction> old = body;
    order = findDependences(program, body);
    sinkFollowers();
    order = findDependences(program, body);
    choose();
    if (gathers.empty() && hastened.empty()) {
      body = std::move(old);
      return;
    }
    gatherInTime();
    boundMemory();
    moveAll();
  }

private:
  uint32_t count() const { return uint32_t(body.size()); }
  bool isCollective(uint32_t i) const { return body[i].opcode == rt::Opcode::Collective; }
  /// Collectives across classes keep their order, in which no class waits for another in a circle.
  bool mayMove(uint32_t i) const {
    return isCollective(i) && !program.collectives[body[i].target].isAcrossClasses();
  }

  std::vector<Place> currentPlaces() const;
  void reorder(std::vector<Place> places);
  void sinkFollowers();
  std::vector<bool> findFollowers() const;
  bool reads(uint32_t number, uint32_t writer) const;
  void choose();
  void findPrepared();
  Gather makeGather(uint32_t number, uint32_t firstUse) const;
  bool gains(uint32_t number, uint32_t begin, uint32_t end) const;
  std::vector<Busy> findBusy() const;
  void findTimes();
  void gatherInTime();
  uint64_t gatheredAtOnce() const;
  void boundMemory();
  void moveAll();

  const rt::Program &program;
  std::vector<rt::Instruction> &body;
  const double leastGain;
  Dependences order;
  /// True for kernels that depend only on values from before the body.
  std::vector<bool> isPrepared;
  /// Seconds of computation before each instruction, and in total at the end.
  std::vector<double> computed;
  /// Seconds from the beginning to each instruction, if the compute stream never waits.
  std::vector<double> times;
  /// All-gathers that move to the communication stream.
  std::vector<Gather> gathers;
  /// Other collectives that move there, with the instructions that they are to precede.
  std::vector<std::pair<uint32_t, uint32_t>> hastened;
};

std::vector<Place> Orderer::currentPlaces() const {
  std::vector<Place> places;
  for (uint32_t i = 0; i < count(); ++i) {
    places.push_back({i, true, i});
  }
  return places;
}

void Orderer::reorder(std::vector<Place> places) {
  std::sort(places.begin(), places.end());
  std::vector<rt::Instruction> ordered;
  for (const Place &place : places) {
    ordered.push_back(std::move(body[place.number]));
  }
  body = std::move(ordered);
}

/// Returns true if instruction `number` reads a buffer that `writer` writes.
bool Orderer::reads(uint32_t number, uint32_t writer) const {
  auto isRead = [&](const rt::Operand &written) {
    return written.access != rt::Access::Read &&
           std::any_of(body[number].operands.begin(), body[number].operands.end(),
                       [&](const rt::Operand &operand) {
                         return operand.buffer == written.buffer &&
                                operand.access != rt::Access::Write;
                       });
  };
  return std::any_of(body[writer].operands.begin(), body[writer].operands.end(), isRead);
}

/// Finds kernels and observations of a collective's result, or of another follower's, that do not
/// reduce the memory in use.
std::vector<bool> Orderer::findFollowers() const {
  std::vector<uint32_t> first(program.buffers.size(), count()), last(program.buffers.size(), 0);
  for (uint32_t i = 0; i < count(); ++i) {
    for (const rt::Operand &operand : body[i].operands) {
      first[operand.buffer] = std::min(first[operand.buffer], i);
      last[operand.buffer] = i;
    }
  }
  std::vector<bool> isFollower(count(), false);
  for (uint32_t i = 0; i < count(); ++i) {
    int64_t gained = 0;
    for (const rt::Operand &operand : body[i].operands) {
      const rt::Buffer &buffer = program.buffers[operand.buffer];
      bool begins = first[operand.buffer] == i, ends = last[operand.buffer] == i;
      gained += buffer.persistent ? 0 : int64_t(buffer.bytes) * (int(begins) - int(ends));
    }
    auto gives = [&](uint32_t other) {
      return (isCollective(other) || isFollower[other]) && reads(i, other);
    };
    bool moves = body[i].opcode == rt::Opcode::Kernel || body[i].opcode == rt::Opcode::Observe;
    isFollower[i] =
        moves && gained >= 0 && std::any_of(order.before[i].begin(), order.before[i].end(), gives);
  }
  return isFollower;
}

void Orderer::sinkFollowers() {
  std::vector<bool> isFollower = findFollowers();
  std::vector<Place> places = currentPlaces();
  for (uint32_t i = count(); i-- > 0;) {
    if (!isFollower[i]) {
      continue;
    }
    places[i] = {count(), false, i};
    for (uint32_t other : order.after[i]) {
      places[i].at = std::min(places[i].at, places[other].at);
    }
  }
  reorder(std::move(places));
}

void Orderer::findPrepared() {
  isPrepared.assign(count(), false);
  for (uint32_t i = 0; i < count(); ++i) {
    auto lasts = [&](const rt::Operand &operand) {
      return operand.access != rt::Access::Read && program.buffers[operand.buffer].persistent;
    };
    const std::vector<rt::Operand> &operands = body[i].operands;
    isPrepared[i] = body[i].opcode == rt::Opcode::Kernel &&
                    std::none_of(operands.begin(), operands.end(), lasts) &&
                    std::all_of(order.before[i].begin(), order.before[i].end(),
                                [&](uint32_t other) { return isPrepared[other]; });
  }
}

/// Includes the kernels that prepare its shard, if they take no longer than the all-gather.
Gather Orderer::makeGather(uint32_t number, uint32_t firstUse) const {
  const std::vector<uint32_t> &after = order.after[number];
  uint32_t lastUse = after.empty() ? number : *std::max_element(after.begin(), after.end());
  uint32_t result = body[number].operands[1].buffer;
  Gather gather = {number, firstUse, lastUse, 0, number, program.buffers[result].bytes, {}};
  double seconds = 0;
  std::vector<uint32_t> open = order.before[number];
  std::vector<uint32_t> &found = gather.preparing;
  while (!open.empty() && found.size() <= kMaxPreparing) {
    uint32_t other = open.back();
    open.pop_back();
    if (!isPrepared[other]) {
      gather.earliest = std::max(gather.earliest, other + 1);
    } else if (std::find(found.begin(), found.end(), other) == found.end()) {
      found.push_back(other);
      seconds += body[other].cost.seconds;
      open.insert(open.end(), order.before[other].begin(), order.before[other].end());
    }
  }
  if (found.size() > kMaxPreparing || seconds > body[number].cost.seconds) {
    found.clear();
    for (uint32_t other : order.before[number]) {
      gather.earliest = std::max(gather.earliest, other + 1);
    }
  }
  return gather;
}

/// Returns true if a collective that runs beside the instructions [begin, end) saves enough time:
/// that of the instructions, or what they get done until the collective ends.
bool Orderer::gains(uint32_t number, uint32_t begin, uint32_t end) const {
  double beside = begin < end ? computed[end] - computed[begin] : 0;
  const rt::Cost &cost = body[number].cost;
  return std::min(beside, cost.seconds * (1 - cost.share)) > leastGain;
}

void Orderer::choose() {
  findPrepared();
  computed.assign(1, 0);
  for (uint32_t i = 0; i < count(); ++i) {
    computed.push_back(computed[i] + (isCollective(i) ? 0 : body[i].cost.seconds));
  }
  for (uint32_t i = 0; i < count(); ++i) {
    if (!mayMove(i)) {
      continue;
    }
    const std::vector<uint32_t> &before = order.before[i], &after = order.after[i];
    uint32_t firstUse = after.empty() ? count() : *std::min_element(after.begin(), after.end());
    if (program.collectives[body[i].target].kind == rt::CollectiveKind::AllGather) {
      Gather gather = makeGather(i, firstUse);
      if (gains(i, gather.earliest, firstUse)) {
        gathers.push_back(std::move(gather));
      }
      continue;
    }
    uint32_t ready = before.empty() ? 0 : *std::max_element(before.begin(), before.end()) + 1;
    if (gains(i, ready, firstUse)) {
      hastened.emplace_back(i, ready);
    }
  }
}

void Orderer::findTimes() {
  std::vector<bool> isBeside(count(), false);
  for (const Gather &gather : gathers) {
    isBeside[gather.number] = true;
  }
  for (auto [number, at] : hastened) {
    isBeside[number] = true;
  }
  times.assign(1, 0);
  for (uint32_t i = 0; i < count(); ++i) {
    times.push_back(times[i] + (isBeside[i] ? 0 : body[i].cost.seconds));
  }
}

/// Returns the times that other collectives than `gathers` occupy the links, in the order of issue.
std::vector<Busy> Orderer::findBusy() const {
  std::vector<bool> isGathered(count(), false);
  for (const Gather &gather : gathers) {
    isGathered[gather.number] = true;
  }
  std::vector<Place> places = currentPlaces();
  for (auto [number, at] : hastened) {
    places[number] = {at, false, number};
  }
  std::erase_if(places, [&](const Place &place) {
    return !isCollective(place.number) || isGathered[place.number];
  });
  std::sort(places.begin(), places.end());
  std::vector<Busy> busy;
  for (const Place &place : places) {
    double begin = std::max(times[place.at], busy.empty() ? 0 : busy.back().end);
    busy.push_back({begin, begin + body[place.number].cost.seconds});
  }
  return busy;
}

void Orderer::gatherInTime() {
  findTimes();
  std::vector<Busy> busy = findBusy();
  std::sort(gathers.begin(), gathers.end(), [](const Gather &a, const Gather &b) {
    return std::tie(a.firstUse, a.number) > std::tie(b.firstUse, b.number);
  });
  double time = times.back();
  for (Gather &gather : gathers) {
    time = std::min(time, times[gather.firstUse]);
    double missing = kMargin * body[gather.number].cost.seconds;
    while (true) {
      while (!busy.empty() && busy.back().begin >= time) {
        busy.pop_back();
      }
      double free = time - (busy.empty() ? -std::numeric_limits<double>::infinity()
                                         : std::min(busy.back().end, time));
      if (free >= missing) {
        time -= missing;
        break;
      }
      missing -= free;
      time = busy.back().begin;
    }
    auto at = uint32_t(std::upper_bound(times.begin(), times.end(), time) - times.begin());
    // Not later than in the old order either, so that a wrong prediction makes nothing worse.
    gather.at = std::clamp(at - (at > 0), gather.earliest, gather.number);
  }
}

/// The most bytes that gathered values take at one time in the old order.
uint64_t Orderer::gatheredAtOnce() const {
  std::vector<std::pair<uint32_t, int64_t>> changes;
  for (const Gather &gather : gathers) {
    changes.emplace_back(gather.number, int64_t(gather.bytes));
    changes.emplace_back(gather.lastUse + 1, -int64_t(gather.bytes));
  }
  std::sort(changes.begin(), changes.end());
  int64_t now = 0, most = 0;
  for (auto [number, bytes] : changes) {
    now += bytes;
    most = std::max(most, now);
  }
  return uint64_t(most);
}

/// Delays all-gathers that would raise the bytes of gathered values above that.
void Orderer::boundMemory() {
  uint64_t bound = gatheredAtOnce(), bytes = 0;
  std::sort(gathers.begin(), gathers.end(), [](const Gather &a, const Gather &b) {
    return std::tie(a.at, a.number) < std::tie(b.at, b.number);
  });
  // All-gathers that are issued and not used yet.
  std::vector<const Gather *> open;
  auto isUsedLater = [](const Gather *a, const Gather *b) { return a->firstUse < b->firstUse; };
  for (Gather &gather : gathers) {
    while (!open.empty()) {
      auto next = std::min_element(open.begin(), open.end(), isUsedLater);
      bool isFull = bytes + gather.bytes > bound && gather.at < gather.number;
      if ((*next)->firstUse > gather.at && !isFull) {
        break;
      }
      gather.at = std::min(std::max(gather.at, (*next)->firstUse), gather.number);
      bytes -= (*next)->bytes;
      open.erase(next);
    }
    bytes += gather.bytes;
    open.push_back(&gather);
  }
}

void Orderer::moveAll() {
  std::vector<Place> places = currentPlaces();
  for (auto [number, at] : hastened) {
    places[number] = {at, false, number};
    body[number].stream = rt::Stream::Communication;
  }
  for (const Gather &gather : gathers) {
    places[gather.number] = {gather.at, false, gather.number};
    body[gather.number].stream = rt::Stream::Communication;
    for (uint32_t other : gather.preparing) {
      places[other] = std::min(places[other], {gather.at, false, other});
    }
  }
  reorder(std::move(places));
}

} // namespace

void weft::schedule::orderForStreams(const rt::Program &program, std::vector<rt::Instruction> &body,
                                     double leastGain) {
  Orderer(program, body, leastGain).run();
}
