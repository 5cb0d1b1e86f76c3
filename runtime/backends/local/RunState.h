//===- RunState.h - what the threads of one local run share -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The first failure of a run, and how far each rank has come, for reports on who
// is missing. Any thread may call anything here.
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

/// How far a rank has come. Written by its own thread, read by whoever reports.
struct alignas(64) Progress {
  /// The collective that the rank entered last; null before the first.
  std::atomic<const Operation *> last = nullptr;
  std::atomic<bool> inside = false;
  std::atomic<bool> left = false;
  /// When its work has come on last. Other threads of the rank may write it too.
  std::atomic<std::chrono::steady_clock::time_point> moved = std::chrono::steady_clock::now();
  /// Only for the rank itself.
  double waitedSeconds = 0;
};

class RunState {
public:
  RunState(int64_t ranks, std::chrono::nanoseconds timeout, int spins)
      : progress(size_t(ranks)), timeout(timeout), spins(spins) {}

  bool stopped() const { return stop.load(std::memory_order_acquire); }

  /// Keeps the failure if it is the first, stops the run. Returns false.
  bool fail(Failure found);

  /// A rank's thread is at its end.
  void leave(int64_t rank);

  /// Waits until every rank has left or, once one has failed, until `grace` has
  /// passed. Gives the first failure and whether some rank has not left.
  RunResult wait(std::chrono::nanoseconds grace);

  std::vector<Progress> progress;
  /// How long a rank waits for its partners.
  const std::chrono::nanoseconds timeout;
  /// How often a rank looks for its partners before it sleeps.
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
