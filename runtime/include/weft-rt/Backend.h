//===- Backend.h - how ranks are started and talk to each other -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A Backend runs one function on every rank of its process and gives each a
// Communicator, the only way by which ranks reach each other: they may be threads
// of one process, or processes on several machines. All that a backend must promise
// is stated here and tested by the suite in `runtime/conformance`.
//
// Every collective is prepared once, before the first run, so that running it
// allocates nothing and looks up nothing. Reductions are taken in group order:
// the same operands give the same bits, whatever the timing.
//
// A failure of one rank stops all: every other rank's next call, or the one that
// it waits in, returns false. The first failure is the one reported. Partners that
// do not come within the backend's timeout are a failure too, and one that names
// the collective, who waited and who is missing.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKEND_H
#define WEFT_RT_BACKEND_H

#include "weft-rt/ExitCode.h"
#include "weft-rt/Program.h"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace weft::rt {

/// Where in a program a collective stands. Partners must come from the same place.
struct CallSite {
  /// "init", "step", or another word for calls that stand in neither.
  const char *section = "";
  uint32_t instruction = 0;
  /// The instruction's label.
  std::string label;
};

/// What a rank reports when it cannot go on. `message` is complete for a reader: a
/// backend adds nothing to it.
struct Failure {
  int64_t rank = 0;
  std::string message;
  /// What the process ends with.
  ExitCode code = ExitCode::Error;
};

/// Ranks `first` to before `first + count`.
struct RankRange {
  int64_t first = 0, count = 0;

  bool has(int64_t rank) const { return rank >= first && rank < first + count; }
};

/// One rank's link to the others. Belongs to the rank's thread; only `stopped`, `fail`, `failLate`
/// and `moved` may be called from elsewhere.
class Communicator {
public:
  /// A prepared collective. Small numbers, counted from 0 on every rank.
  using Handle = uint32_t;

  /// Gets what `rank` has brought.
  using Receiver = std::function<void(int64_t rank, std::span<const char> bytes)>;

  virtual ~Communicator() = default;

  virtual int64_t rank() const = 0;

  /// Makes `collective` ready to be run any number of times. May allocate. Does not
  /// wait for partners, which prepare it for themselves.
  virtual Handle prepare(const Collective &collective, const CallSite &site) = 0;

  /// Begins to take part in a prepared collective. `operand` and `result` are one buffer or do
  /// not overlap; one buffer only for all-reduce; both belong to the communicator until `wait`.
  /// Collectives are done in the order in which they are issued, how much of them before `wait`
  /// is up to the backend. REQUIRES: this one is not issued already. Returns false if the run has
  /// stopped.
  virtual bool issue(Handle handle, const void *operand, void *result) = 0;

  /// Returns true once the result of an issued collective, and of all that were issued before
  /// it, holds this rank's result and no partner reads the operand any more. Returns false if the
  /// run has stopped; results are then unspecified.
  virtual bool wait(Handle handle) = 0;

  /// Both at once.
  virtual bool run(Handle handle, const void *operand, void *result) {
    return issue(handle, operand, result) && wait(handle);
  }

  /// Brings bytes of every rank to rank 0, which gets them in the order of ranks, its own among
  /// them; for files and reports. All ranks call it at the same point; partners wait while `take`
  /// works, so it is to be quick. May allocate. Returns false if the run has stopped.
  virtual bool collect(std::span<const char> own, const Receiver &take) = 0;

  /// Stops all ranks with `message`, unless another failure came before. Returns false.
  virtual bool fail(std::string message, ExitCode code = ExitCode::Error) = 0;

  /// As `fail`, of a rank whose device has waited for `patience` in something that `others` take
  /// part in, who are in other processes: where these say that they are comes behind `message`, and
  /// whether they move decides between stuck and slow.
  virtual bool failLate(std::string message, const std::vector<int64_t> & /*others*/,
                        std::chrono::milliseconds /*patience*/) {
    return fail(std::move(message), ExitCode::Stuck);
  }

  /// What to say of the rank's device when other processes ask, from now on and by any thread;
  /// none for nothing.
  virtual void tellBy(std::function<std::string()> /*describe*/) {}

  /// The rank's work has come on. For who waits for it too long that is the difference between a
  /// rank that is slow and one that is stuck.
  virtual void moved() = 0;

  /// Whether any rank has failed.
  virtual bool stopped() const = 0;

  /// Seconds that this rank has waited for partners so far, in all collectives together: what is
  /// left of a collective's time is its work.
  virtual double waitedSeconds() const = 0;
};

/// What became of a run.
struct RunResult {
  /// The first failure, if there was one.
  std::optional<Failure> failure;
  /// After a failure some rank did not return in time. Its thread still uses what
  /// `body` uses, so the process must end without destroying any of it (`_Exit`).
  bool abandoned = false;
};

class Backend {
public:
  virtual ~Backend() = default;

  virtual int64_t rankCount() const = 0;

  /// Those of this process. The process that has rank 0 writes what is one for all.
  virtual RankRange ranksHere() const = 0;

  /// How many there are on this machine, in this and in other processes.
  virtual int64_t ranksOnHost() const = 0;

  /// Whether this process is the one that tells the user of a failure: that of rank 0, unless it
  /// is gone.
  virtual bool reportsErrors() = 0;

  /// All processes meet, outside of `run`; each brings an error, or an empty one. If any does,
  /// returns false, and `error` becomes that of the lowest rank. Otherwise `text` becomes that of
  /// rank 0's process.
  virtual bool agree(std::string &text, std::string &error) = 0;

  /// Calls `body` on every rank of this process, each on its own thread, and waits
  /// for all. A rank's part ends when `body` returns; what it returns plays no role.
  /// May be called again unless a run failed.
  virtual RunResult run(const std::function<void(Communicator &)> &body) = 0;
};

} // namespace weft::rt

#endif // WEFT_RT_BACKEND_H
