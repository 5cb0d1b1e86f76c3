//===- Options.h - the command line of an executable ------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_TRAINING_OPTIONS_H
#define WEFT_RT_TRAINING_OPTIONS_H

#include "data/DataOptions.h"
#include "report/ReportOptions.h"
#include "weft-rt/Program.h"

namespace weft::rt {

/// What an executable is asked to do. Texts for users are in Options.cpp's table.
struct Options : DataOptions, ReportOptions {
  enum class Action : uint8_t { Train, Help, Version, PrintPlan, PrintProgram };

  Action action = Action::Train;
  /// Files; empty if not given.
  std::string profile, save, load, saveGradients, saveLogits;
  std::string algorithmCache;
  /// A folder; empty if not given.
  std::string checkpointDir;
  /// Absent: only after the last step, and all are kept.
  std::optional<int64_t> checkpointEvery, checkpointKeep;
  /// Go on from the checkpoint of a run with another seed, data or batch.
  bool allowChanges = false;
  int64_t steps = 0;
  int64_t gradientsStep = 0;
  double timeoutSeconds = 60;
  std::optional<int64_t> ranks;
  /// What runs the ranks: threads of this process, or processes that MPI or TCP connects. By who
  /// started it if not given.
  enum class Backend : uint8_t { Local, Mpi, Tcp };
  std::optional<Backend> backend;
  /// All words of the command line, to be compared between processes.
  std::string words;
  /// Of each rank; see `threadsOf`.
  std::optional<int64_t> threads;
  /// On devices, which are faster without: the same run has the same bits.
  bool isDeterministic = false;
  /// On devices, whether steps are launched as graphs.
  bool usesGraphs = false;
};

/// Reads the arguments after the program's name. Defaults come from `program`. Fails on unknown
/// options, on values that an option does not take, and on options that contradict each other.
bool parseOptions(const Program &program, std::span<const char *const> arguments, Options &options,
                  std::string &error);

/// Threads that each rank of the program uses: what was asked for, or else as many as the rank's
/// device has cores, but no more than this machine has processors for each of the `ranksOnHost`.
int64_t threadsOf(const Program &program, const Options &options, int64_t ranksOnHost);

/// What --help prints; `name` is how the executable was called.
std::string helpText(const Program &program, const std::string &name);

/// "2 ranks (data=2)".
std::string meshText(const Program &program);

} // namespace weft::rt

#endif // WEFT_RT_TRAINING_OPTIONS_H
