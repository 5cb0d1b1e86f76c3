//===- FailureDetector.h - reports failures between processes -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reports this process's failures, receives those of others, answers how far its rank is, and
// ends the run in good order. It uses only the ControlChannel, so it works while MPI does not.
//
// The rank's thread may call `stopped`, `fail`, `tellBy`, `moved`, `waits`, `enter`, `leave` and
// `wake`. Only the thread that made the FailureDetector may call the other functions; it prepares
// the run, or is in `agree` or `serve`.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_PROCESSES_FAILUREDETECTOR_H
#define WEFT_RT_BACKENDS_PROCESSES_FAILUREDETECTOR_H

#include "backends/processes/ControlChannel.h"
#include "backends/processes/Coordinator.h"

#include <atomic>
#include <mutex>

namespace weft::rt::mpi {

class FailureDetector {
public:
  using Clock = std::chrono::steady_clock;

  /// `places` describes by rank where it runs; the ControlChannel is connected to all of them.
  /// `run` names this run on this machine; other users see it. From now on
  /// SIGTERM is blocked until the next call of `agree` or `serve`, which leave a moment for a
  /// report before the process ends.
  FailureDetector(ControlChannel &controlChannel, int64_t rank, std::vector<std::string> places,
                  std::string run, std::chrono::nanoseconds grace);
  ~FailureDetector();

  bool stopped() const { return isStopped.load(std::memory_order_acquire); }
  /// See Communicator::fail.
  bool fail(const std::string &message, ExitCode code = ExitCode::Error);
  /// See Communicator::tellBy. `describe` must not call any function of this class.
  void tellBy(std::function<std::string()> describe);
  /// See Communicator::moved.
  void moved() { movedAt.store(Clock::now(), std::memory_order_relaxed); }
  /// Reports that the rank waits for missing ranks, or gives up.
  void waits(const Waiting &waiting);
  /// Sets the description of the collective that the rank is in. `text` must live until `serve` has
  /// returned, and forever if the run was abandoned.
  void enter(const std::string *text) {
    inside.store(true, std::memory_order_relaxed);
    last.store(text, std::memory_order_release);
  }
  void leave() { inside.store(false, std::memory_order_release); }
  /// Records that a collective has ended, which the rank may not have waited for. Any thread may
  /// call it. `text` is as in `enter`.
  void ended(const std::string *text) {
    if (!inside.load(std::memory_order_relaxed)) {
      last.store(text, std::memory_order_release);
    }
  }

  /// See Backend::agree.
  Result<std::string> agree(const Result<std::string> &own);

  /// Returns the time after which to call it again, or `kNoWork`.
  using Work = std::function<std::chrono::microseconds()>;
  static constexpr std::chrono::microseconds kNoWork = std::chrono::microseconds::max();

  /// Handles messages until `isDone` on all ranks. Calls `work` repeatedly. `begun` returns the
  /// number of collectives that the rank has begun, by group. After a failure returns once the
  /// rank's thread is done or `grace` has passed.
  RunResult serve(const std::function<bool()> &isDone, const Work &work,
                  const std::function<std::map<int64_t, int64_t>()> &begun);
  /// Wakes `serve`. Any thread may call it.
  void wake();

  /// See Backend::speaks.
  bool reportsErrors();
  /// Returns true if the run failed, so that some processes may end without waiting for others.
  bool isBroken() const { return failure.has_value() || hasDisagreed; }

private:
  void poll(std::chrono::microseconds limit);
  void handle(int64_t rank, uint8_t kind, const std::string &text);
  void handleOther(uint8_t kind, const std::string &text);
  void handleSignal();
  Answer answer() const;
  void sendLeaving(const std::map<int64_t, int64_t> &begun);
  void stop(const Failure &found);
  bool isOver(bool isDone, Clock::time_point now);

  ControlChannel &controlChannel;
  const int64_t self;
  const std::vector<std::string> places;
  const std::string run;
  const std::chrono::nanoseconds grace;

  std::atomic<bool> isStopped = false, inside = false;
  std::atomic<const std::string *> last = nullptr;
  std::atomic<Clock::time_point> movedAt = Clock::now();
  int wakeDescriptor = -1, signalDescriptor = -1;

  /// Guards the ControlChannel's messages and all members below.
  mutable std::mutex mutex;
  /// Used only at rank 0.
  Coordinator coordinator;
  /// The first failure, as rank 0 decided it; or the failure that rank 0 is gone or silent.
  std::optional<Failure> failure;
  /// Describes the state of the rank's device.
  std::function<std::string()> describeDevice;
  bool hasDisagreed = false;
  /// True once the launcher has sent SIGTERM and will soon kill this process.
  bool isHurried = false;
  /// `wasMute`, at rank 0: another rank has reported in its place.
  bool firstIsGone = false, firstIsMute = false, firstTells = false, wasMute = false,
       hasLeft = false, isAllOver = false;
  /// The times at which this rank has reported a failure to rank 0, and heard of one.
  std::optional<Clock::time_point> told, heard;
  Failure toldFailure;
  /// The state of `agree`: the votes by rank (at rank 0), and the result (at other ranks).
  std::vector<std::optional<std::string>> votes;
  std::optional<std::string> agreed;
  int reporter = -1;
};

} // namespace weft::rt::mpi

#endif // WEFT_RT_BACKENDS_PROCESSES_FAILUREDETECTOR_H
