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
#include "support/TestDelays.h"
#include "weft-rt/Program.h"

namespace weft::rt {

/// The steps from `first` to `last`.
struct StepRange {
  int64_t first = 0, last = 0;

  bool has(int64_t step) const { return first <= step && step <= last; }
  int64_t count() const { return last - first + 1; }
};

/// The parsed command line of an executable. The table in Options.cpp has the texts for users.
struct Options : DataOptions, ReportOptions {
  enum class Action : uint8_t { Train, Help, Version, PrintPlan, PrintProgram, PrintTimes };

  Action action = Action::Train;
  /// Files; empty if not given.
  std::string profile, save, load, saveGradients, saveLogits;
  std::string algorithmCache;
  /// The file of the time line; empty if not given. Its steps, by default the last one; its ranks,
  /// in words of `parseRanks`; whether it shows instructions.
  std::string timeLine;
  std::optional<StepRange> timeLineSteps;
  std::string timeLineRanks;
  bool timeLineHasInstructions = true;
  /// A folder; empty if not given.
  std::string checkpointDir;
  /// If absent: write only after the last step, and keep all.
  std::optional<int64_t> checkpointEvery, checkpointKeep;
  /// Resume even if seed, data or batch differ from those of the checkpoint's run.
  bool allowChanges = false;
  int64_t steps = 0;
  int64_t gradientsStep = 0;
  double timeoutSeconds = 60;
  std::optional<int64_t> ranks;
  /// How ranks run: as threads of this process, or as processes connected by MPI or TCP. The
  /// launcher decides if not given.
  enum class Backend : uint8_t { Local, Mpi, Tcp };
  std::optional<Backend> backend;
  /// All words of the command line, which processes compare.
  std::string words;
  /// The threads of each rank; see `threadsOf`.
  std::optional<int64_t> threads;
  /// Requires the same bits from the same run on devices, which are faster without.
  bool isDeterministic = false;
  /// Launches steps as graphs on devices.
  bool usesGraphs = false;
  /// Runs collectives in line with computation.
  bool isInLine = false;
  /// From the environment.
  TestDelays testDelays;

  /// Returns true if the times of single instructions are asked for.
  bool takesTimes() const { return !profile.empty() || !timeLine.empty(); }
};

/// Parses the arguments after the program's name. Defaults come from `program`. Fails on unknown
/// options, invalid values, and options that contradict each other.
Result<Options> parseOptions(const Program &program, std::span<const char *const> arguments);

/// Returns the number of threads of each rank: the given number, else the cores of the rank's
/// device, but at most this machine's processors divided by `ranksOnHost`.
int64_t threadsOf(const Program &program, const Options &options, int64_t ranksOnHost);

/// Returns the text of --help; `name` is the executable's name as it was called.
std::string helpText(const Program &program, const std::string &name);

/// Returns "2 ranks (data=2)" or "8 ranks (2 classes)".
std::string meshText(const Program &program);

} // namespace weft::rt

#endif // WEFT_RT_TRAINING_OPTIONS_H
