//===- Engine.h - runs collectives by messages ----------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A queue of collectives that the rank has issued, of which the first is under way, see
// CollectiveExchange.h.
//
// `advance` does what can be done without waiting. The rank's thread calls it while it
// waits, another one now and then while the rank computes; a lock lets one at a time in.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_PROCESSES_ENGINE_H
#define WEFT_RT_BACKENDS_PROCESSES_ENGINE_H

#include "backends/processes/CollectiveExchange.h"

#include <atomic>
#include <deque>
#include <map>

namespace weft::rt::mpi {

class Engine {
public:
  using Clock = FailureDetector::Clock;

  Engine(const TransportTable &library, uint64_t world, std::vector<Axis> mesh, int64_t rank,
         FailureDetector &detector, std::chrono::nanoseconds timeout);

  // See Communicator. By the rank's thread.
  Communicator::Handle prepare(const Collective &collective, const CallSite &site);
  bool issue(Communicator::Handle handle, const void *operand, void *result);
  bool wait(Communicator::Handle handle);
  bool collect(std::span<const char> own, const Communicator::Receiver &take);
  double waitedSeconds() const { return waited; }

  /// Any thread: goes on with what has been issued, if nobody else does. Returns whether there is
  /// still something to do for it; when there is again, `FailureDetector::wake` is called.
  bool help();

  /// How many collectives of each group have begun. By the rank's thread, or after its end.
  const std::map<int64_t, int64_t> &begun() const { return begunCounts; }

private:
  bool advance();
  bool isQueued(Communicator::Handle handle) const;
  void keepWaiting(Clock::duration idle);
  void report(bool isTooLong);
  bool transfer(const Operation &operation, int64_t partner, uint64_t request);
  bool transferAll(const Operation &operation, int64_t partner, char *bytes, size_t count);
  static void pauseFor(Clock::duration idle);

  const Post post;
  const std::vector<Axis> mesh;
  const std::chrono::nanoseconds timeout;
  double waited = 0;
  /// Whether the rank's thread waits, and so goes on with the queue itself.
  std::atomic<bool> isAttended = false;
  Clock::duration nextAsk = {};
  bool hasReported = false;

  /// One of a rank's own, for `collect`.
  Communicator::Handle collecting = 0;
  /// Never shrinks, so operations stay where they are.
  std::deque<Operation> operations;

  /// Guards MPI and all below.
  std::mutex mutex;
  std::vector<Issued> queue;
  /// Of the first in the queue, once it has begun.
  CollectiveExchange exchange;
  Clock::time_point lastMove;
  std::map<int64_t, int64_t> begunCounts;
};

} // namespace weft::rt::mpi

#endif // WEFT_RT_BACKENDS_PROCESSES_ENGINE_H
