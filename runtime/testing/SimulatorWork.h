//===- SimulatorWork.h - what is enqueued, and in which order it is done -===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Nothing is done when it is enqueued. What somebody waits for is done then, and what else is
// ready may be: the order is one that streams and events allow, drawn by the seed among those that
// code which forgets an event is least prepared for.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_TESTING_SIMULATORWORK_H
#define WEFT_RT_TESTING_SIMULATORWORK_H

#include "testing/SimulatorOrder.h"

#include <deque>
#include <functional>

namespace weft::rt::cuda {

/// Numbers that depend on a seed alone.
class Dice {
public:
  explicit Dice(uint64_t seed) : seed(seed) {}
  /// From 0 to before `count`.
  uint64_t roll(uint64_t count);

private:
  uint64_t seed, rolls = 0;
};

struct Work {
  /// "launch of 'k_phase_0' (call 12)".
  std::string what;
  Place place;
  /// What comes before, and itself.
  Clock clock;
  /// Throws Misuse.
  std::function<void()> run;
  /// Whether it can be done as far as other devices go; empty where it has none to wait for.
  std::function<bool()> isMet = {};
};

class WorkGraph {
public:
  explicit WorkGraph(Dice &dice) : dice(dice) {}

  void add(Work work);
  /// Does all that `target` covers, and what comes in between. Where work fails, says which. Where
  /// it waits for other devices, calls `helpOthers`, which does some of theirs and returns whether
  /// there was any; returns false if that is not enough.
  bool finish(const Clock &target, const std::function<bool()> &helpOthers);
  /// Does one unit of work; whether there was one.
  bool advance();
  /// Whether the work at `place` is the next of its stream, and all before it is done.
  bool isBefore(Place place) const;
  /// Does a few units of work, or none.
  void loiter();
  bool isDone(const Clock &target) const { return done.covers(target); }

private:
  /// How the order is drawn while somebody waits.
  enum class Mood : uint8_t { Lazy, Any, Ahead };

  /// Whether all is done that the stream's next work comes after.
  bool isReached(size_t stream) const;
  /// Streams whose next work may be done.
  std::vector<size_t> readyStreams() const;
  size_t choose(const std::vector<size_t> &ready, const Clock &target, Mood mood);
  void runNext(size_t stream);

  Dice &dice;
  std::vector<std::deque<Work>> streams;
  Clock done;
};

} // namespace weft::rt::cuda

#endif // WEFT_RT_TESTING_SIMULATORWORK_H
