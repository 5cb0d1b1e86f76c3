//===- RunState.h - shared state of the threads of one local run ------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The first failure of a run, and the progress of each rank, for reports that name
// missing ranks. Any thread may call any function here.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_LOCAL_RUNSTATE_H
#define WEFT_RT_BACKENDS_LOCAL_RUNSTATE_H

#include "weft-rt/Backend.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <vector>

namespace weft::rt::local {

class Operation;

/// The progress of a rank. The rank's threads write it, any thread may read it for a report.
struct alignas(64) Progress {
  /// The collective that the rank entered last; null before the first.
  std::atomic<const Operation *> last = nullptr;
  std::atomic<bool> inside = false;
  std::atomic<bool> left = false;
  /// The last time at which the rank's work made progress. Other threads of the rank write it too.
  std::atomic<std::chrono::steady_clock::time_point> moved = std::chrono::steady_clock::now();
  /// Since when the rank's thread has waited for other ranks; `kNotWaiting` while it does not.
  std::atomic<std::chrono::steady_clock::time_point> waitsSince = kNotWaiting;

  static constexpr std::chrono::steady_clock::time_point kNotWaiting =
      std::chrono::steady_clock::time_point::max();
};

class RunState {
public:
  RunState(int64_t ranks, std::chrono::nanoseconds timeout, int spins)
      : progress(size_t(ranks)), timeout(timeout), spins(spins) {}

  bool stopped() const { return stop.load(std::memory_order_acquire); }

  /// Keeps the failure if it is the first, and stops the run. Returns false.
  bool fail(Failure found);

  /// Records that the rank's thread ends.
  void leave(int64_t rank);

  /// Waits until every rank has left or until `grace` has passed after a failure. Returns the first
  /// failure, and whether some rank has not left.
  RunResult wait(std::chrono::nanoseconds grace);

  std::vector<Progress> progress;
  /// The longest time that a rank waits for the others.
  const std::chrono::nanoseconds timeout;
  /// How often a rank polls for the others before it sleeps.
  const int spins;

private:
  std::atomic<bool> stop = false;
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<Failure> failure;
  size_t leftCount = 0;
};

} // namespace weft::rt::local

#endif // WEFT_RT_BACKENDS_LOCAL_RUNSTATE_H
