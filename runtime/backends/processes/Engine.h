//===- Engine.h - runs collectives by messages ----------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A queue of the collectives that the rank has issued. The first is under way, see
// CollectiveExchange.h.
//
// `advance` does all work that needs no waiting. The rank's thread calls it while it waits,
// another thread calls it regularly while the rank computes; a lock lets one in at a time.
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

  Engine(const TransportTable &library, uint64_t world, int64_t ranks, int64_t rank,
         FailureDetector &detector, std::chrono::nanoseconds timeout,
         const TestDelays &delays = {});

  // See Communicator. Only the rank's thread may call these.
  Communicator::Handle prepare(const Collective &collective, const RankGroup &group,
                               const CallSite &site);
  bool issue(Communicator::Handle handle, const void *operand, void *result);
  bool wait(Communicator::Handle handle);
  bool collect(std::span<const char> own, const Communicator::Receiver &take);
  double waitedSeconds() const { return waited; }

  /// Returns true while another thread advances them. Any thread may call it.
  bool isHelped() const { return isHelping.load(std::memory_order_relaxed); }

  /// Advances the issued collectives, unless another thread does. Returns the time after which it
  /// should be called again; once it returned `kNoWork`, `FailureDetector::wake` tells when there
  /// is more to do. Any thread may call it.
  std::chrono::microseconds help();

  /// Returns the number of collectives that have begun, by group. Only the rank's thread may call
  /// it, or any thread after its end.
  const std::map<int64_t, int64_t> &begun() const { return begunCounts; }

private:
  /// `Beginning` and `Ending` are before and after the exchange.
  enum class Stage : uint8_t { Next, Beginning, Exchanging, Ending };

  bool advance();
  bool advanceFirst();
  bool isQueued(Communicator::Handle handle) const;
  Clock::duration pauseLeft() const;
  void keepWaiting(Clock::duration idle, Clock::duration pause);
  void report(bool isTooLong);
  bool transfer(const Operation &operation, int64_t partner, uint64_t request, size_t length);
  bool transferAll(const Operation &operation, int64_t partner, char *bytes, size_t count);
  static void pauseFor(Clock::duration idle);

  const Post post;
  const std::chrono::nanoseconds timeout;
  double waited = 0;
  /// True while the rank's thread waits and thus advances the queue itself.
  std::atomic<bool> isAttended = false;
  /// True while `help` advances the queue.
  std::atomic<bool> isHelping = false;
  Clock::duration nextAsk = {};
  bool hasReported = false;

  /// The operation that `collect` runs.
  Communicator::Handle collecting = 0;
  /// Never shrinks, so that pointers to operations stay valid.
  std::deque<Operation> operations;

  /// Guards calls of MPI and all members below.
  std::mutex mutex;
  std::vector<Issued> queue;
  /// The exchange of the first collective in the queue, once it has begun.
  CollectiveExchange exchange;
  /// Of the first collective in the queue.
  Stage stage = Stage::Next;
  /// For tests.
  const TestDelays delays;
  Shaker shaker;
  /// The end of the pause before or after the first collective; no time without a pause.
  Clock::time_point pausesUntil = {};
  Clock::time_point lastMove;
  std::map<int64_t, int64_t> begunCounts;
};

} // namespace weft::rt::mpi

#endif // WEFT_RT_BACKENDS_PROCESSES_ENGINE_H
