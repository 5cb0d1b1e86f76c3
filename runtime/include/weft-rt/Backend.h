//===- Backend.h - starts ranks and connects them -------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A Backend runs one function on every rank of its process and gives each rank a
// Communicator, the only link between ranks. Ranks may be threads of one process,
// or processes on several machines. This file states all promises of a backend; the
// tests in `runtime/conformance` check them.
//
// Every collective is prepared once, before the first run, so that running it
// allocates nothing and looks up nothing. Reductions combine operands in group
// order: the same operands give the same bits, whatever the timing.
//
// A failure of one rank stops all: the pending or next call of every other rank
// returns false. The first failure is reported. A partner that does not come to a
// collective within the backend's timeout is a failure too; its message names the
// collective, the rank that waited and the missing rank.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKEND_H
#define WEFT_RT_BACKEND_H

#include "weft-rt/ExitCode.h"
#include "weft-rt/Program.h"
#include "weft-rt/Status.h"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace weft::rt {

/// The place of a collective in a program. Partners must call it from the same place, but for
/// transfers.
struct CallSite {
  /// The name of the body, or another word for calls outside of bodies.
  const char *section = "";
  uint32_t instruction = 0;
  /// The instruction's label.
  std::string label;
};

/// The report of a rank that cannot go on. `message` is complete for the user: a backend adds
/// nothing to it.
struct Failure {
  int64_t rank = 0;
  std::string message;
  /// The exit status of the process.
  ExitCode code = ExitCode::Error;
};

/// One rank's link to the others. Belongs to the rank's thread; other threads may call only
/// `stopped`, `fail`, `failLate` and `moved`.
class Communicator {
public:
  /// The number of a prepared collective, counted from 0 on every rank.
  using Handle = uint32_t;

  /// Receives the bytes that `rank` sent.
  using Receiver = std::function<void(int64_t rank, std::span<const char> bytes)>;

  virtual ~Communicator() = default;

  virtual int64_t rank() const = 0;

  /// Prepares `collective` among the ranks of `group`, of which this is one, for any number of
  /// runs. May allocate. Does not wait for partners, which prepare it themselves.
  virtual Handle prepare(const Collective &collective, const RankGroup &group,
                         const CallSite &site) = 0;

  /// Starts this rank's part in a prepared collective. `operand` and `result` must not overlap,
  /// except that an all-reduce may get one buffer as both; they belong to the communicator until
  /// `wait`. Collectives run in the order of their issue; the backend decides how much of them it
  /// does before `wait`. REQUIRES: `handle` is not issued already. Returns false if the run has
  /// stopped.
  virtual bool issue(Handle handle, const void *operand, void *result) = 0;

  /// Waits until an issued collective, and all issued before it, are done: their results are
  /// complete and no partner reads their operands. Returns false if the run has stopped; results
  /// are then unspecified.
  virtual bool wait(Handle handle) = 0;

  /// Issues the collective and waits for it.
  virtual bool run(Handle handle, const void *operand, void *result) {
    return issue(handle, operand, result) && wait(handle);
  }

  /// Sends `own` to rank 0, which passes the bytes of all ranks, its own included, to `take` in the
  /// order of ranks; for files and reports. All ranks must call it at the same point. Partners wait
  /// while `take` runs, so it must be quick. May allocate. Returns false if the run has stopped.
  virtual bool collect(std::span<const char> own, const Receiver &take) = 0;

  /// Stops all ranks with `message`, unless another failure came first. Returns false.
  virtual bool fail(std::string message, ExitCode code = ExitCode::Error) = 0;

  /// Stops all ranks if `status` is an error, as `fail` does. Returns true for success.
  bool check(const Status &status) { return status || fail(status.error().message); }

  /// Like `fail`, for a rank whose device has waited for `patience` in work that the ranks
  /// `others`, of other processes, take part in. Appends the progress that these report to
  /// `message`; their progress also decides whether the run ends as stuck or as slow.
  virtual bool failLate(std::string message, const std::vector<int64_t> & /*others*/,
                        std::chrono::milliseconds /*patience*/) {
    return fail(std::move(message), ExitCode::Stuck);
  }

  /// Sets the function that describes the progress of the rank's device when other processes ask;
  /// any thread may call it from now on. An empty function means no description.
  virtual void tellBy(std::function<std::string()> /*describe*/) {}

  /// Records that the rank has made progress. Ranks that wait for it too long use this to tell a
  /// slow rank from a stuck one.
  virtual void moved() = 0;

  /// Returns true if any rank has failed.
  virtual bool stopped() const = 0;

  /// Returns the seconds that the rank's thread has waited for partners so far, over all
  /// collectives; the rest of their time is work.
  virtual double waitedSeconds() const = 0;

  /// Returns the number of threads that work on this rank's issued collectives now, beside the
  /// rank's thread.
  virtual int64_t busyThreads() const { return 0; }
};

/// The result of a run.
struct RunResult {
  /// The first failure, if there was one.
  std::optional<Failure> failure;
  /// True if some rank did not return in time after a failure. Its thread still uses the data of
  /// `body`, so the process must end without destroying any of it (`_Exit`).
  bool abandoned = false;
};

class Backend {
public:
  virtual ~Backend() = default;

  virtual int64_t rankCount() const = 0;

  /// Returns the ranks of this process. The process of rank 0 writes the files of the whole run.
  virtual RankRange ranksHere() const = 0;

  /// Returns the number of ranks on this machine, in all processes.
  virtual int64_t ranksOnHost() const = 0;

  /// Returns true if this process reports failures to the user: the process of rank 0, unless it
  /// has died.
  virtual bool reportsErrors() = 0;

  /// Waits for all processes; called outside of `run`. Each process passes a text or an error.
  /// Returns the text of rank 0's process, or if any passes an error, that of the lowest rank.
  virtual Result<std::string> agree(const Result<std::string> &own) = 0;

  /// Calls `body` for every rank of this process, each on its own thread, and waits until all have
  /// returned. May be called again unless a run failed.
  virtual RunResult run(const std::function<void(Communicator &)> &body) = 0;
};

} // namespace weft::rt

#endif // WEFT_RT_BACKEND_H
