//===- SimulatorWork.h - enqueued work and the order of running it -------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Work is not done when it is enqueued, but when the host waits for it; other work that is ready
// may run then too. The seed draws the order among those that streams and events allow, and
// prefers orders in which a missing event shows.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_TESTING_SIMULATORWORK_H
#define WEFT_RT_TESTING_SIMULATORWORK_H

#include "testing/SimulatorOrder.h"

#include <deque>
#include <functional>

namespace weft::rt::cuda {

/// A source of random numbers that depend only on a seed.
class Dice {
public:
  explicit Dice(uint64_t seed) : seed(seed) {}
  /// Returns a number from 0 to before `count`.
  uint64_t roll(uint64_t count);

private:
  uint64_t seed, rolls = 0;
};

struct Work {
  /// Its name for errors: "launch of 'k_phase_0' (call 12)".
  std::string what;
  Place place;
  /// All work before it, and itself.
  Clock clock;
  /// Does the work. May throw Misuse.
  std::function<void()> run;
  /// Returns true once other devices are ready for it; empty if it needs no other device.
  std::function<bool()> isMet = {};
};

class WorkGraph {
public:
  explicit WorkGraph(Dice &dice) : dice(dice) {}

  void add(Work work);
  /// Does all work that `target` covers, and perhaps other ready work. An error names the work that
  /// failed. If work waits for other devices, calls `helpOthers`, which does some work of theirs
  /// and returns false if there was none; then this returns false too.
  bool finish(const Clock &target, const std::function<bool()> &helpOthers);
  /// Does one unit of work. Returns false if none is ready.
  bool advance();
  /// Returns true if the work at `place` is the next of its stream and all work before it is done.
  bool isBefore(Place place) const;
  /// Does a random number of units of work, perhaps none.
  void loiter();
  bool isDone(const Clock &target) const { return done.covers(target); }

private:
  /// The ways of drawing the order while the host waits.
  enum class Mood : uint8_t { Lazy, Any, Ahead };

  /// Returns true if all work before the stream's next work is done.
  bool isReached(size_t stream) const;
  /// Returns the streams whose next work can be done.
  std::vector<size_t> readyStreams() const;
  size_t choose(const std::vector<size_t> &ready, const Clock &target, Mood mood);
  void runNext(size_t stream);

  Dice &dice;
  std::vector<std::deque<Work>> streams;
  Clock done;
};

} // namespace weft::rt::cuda

#endif // WEFT_RT_TESTING_SIMULATORWORK_H
