//===- FailureDetector.h - one process among others -----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a process does besides its rank's work: it hears of failures, tells of its own,
// answers for its rank, and ends in good order. It uses the ControlChannel alone, so it works
// while MPI does not.
//
// The rank's thread may call `stopped`, `fail`, `tellBy`, `moved`, `waits`, `enter`, `leave` and
// `wake`; all else belongs to the thread that made the FailureDetector, which is in `agree` or
// `serve`, or prepares the run.
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

  /// The ControlChannel is connected to all of `places`, which says by rank where it runs. `secret`
  /// is the same in all processes of the run and no other's. From now on the signal that ends a
  /// process is held back until the next call of `agree` or `serve`, which give a moment to report
  /// first.
  FailureDetector(ControlChannel &controlChannel, int64_t rank, std::vector<std::string> places,
                  uint64_t secret, std::chrono::nanoseconds grace);
  ~FailureDetector();

  bool stopped() const { return isStopped.load(std::memory_order_acquire); }
  /// See Communicator::fail.
  bool fail(const std::string &message, ExitCode code = ExitCode::Error);
  /// See Communicator::tellBy. What is given must not call anything here.
  void tellBy(std::function<std::string()> describe);
  /// See Communicator::moved.
  void moved() { movedAt.store(Clock::now(), std::memory_order_relaxed); }
  /// The rank has begun to wait for others that it misses, or will not wait longer.
  void waits(const Waiting &waiting);
  /// What to say of the rank from now on, until `serve` has returned: `text` must live as long,
  /// and on if the run was abandoned.
  void enter(const std::string *text) {
    inside.store(true, std::memory_order_relaxed);
    last.store(text, std::memory_order_release);
  }
  void leave() { inside.store(false, std::memory_order_release); }

  /// See Backend::agree.
  bool agree(std::string &text, std::string &error);

  /// Serves until `isDone`, and then until all ranks are. Calls `work` again and again, which says
  /// whether it wants to be called soon. `leaving` tells what the rank has done. Also ends after a
  /// failure, once the rank's part is over or has taken too long.
  RunResult serve(const std::function<bool()> &isDone, const std::function<bool()> &work,
                  const std::function<std::map<int64_t, int64_t>()> &begun);
  /// Any thread: lets `serve` look now.
  void wake();

  /// See Backend::speaks.
  bool reportsErrors();
  /// Whether the run ends by a failure, so that some processes may not wait for others.
  bool isBroken() const { return failure.has_value() || hasDisagreed; }

private:
  void poll(std::chrono::milliseconds limit);
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
  const uint64_t secret;
  const std::chrono::nanoseconds grace;

  std::atomic<bool> isStopped = false, inside = false;
  std::atomic<const std::string *> last = nullptr;
  std::atomic<Clock::time_point> movedAt = Clock::now();
  int wakeDescriptor = -1, signalDescriptor = -1;

  /// Guards the ControlChannel's messages and all below.
  mutable std::mutex mutex;
  /// Only rank 0's is asked.
  Coordinator coordinator;
  /// The first one, as rank 0 says; or that rank 0 does not say anything any more.
  std::optional<Failure> failure;
  /// What the rank's device does.
  std::function<std::string()> describeDevice;
  bool hasDisagreed = false;
  /// The launcher ends this process, and soon.
  bool isHurried = false;
  bool firstIsGone = false, firstIsMute = false, firstTells = false, wasMute = false,
       hasLeft = false, isAllOver = false;
  Clock::time_point lastPoll = Clock::now();
  /// When this rank has told rank 0 of a failure; when it has heard of one.
  std::optional<Clock::time_point> told, heard;
  Failure toldFailure;
  /// Of `agree`: what has come of each rank, at rank 0; the answer, elsewhere.
  std::vector<std::optional<std::string>> votes;
  std::optional<std::string> agreed;
  int reporter = -1;
};

} // namespace weft::rt::mpi

#endif // WEFT_RT_BACKENDS_PROCESSES_FAILUREDETECTOR_H
