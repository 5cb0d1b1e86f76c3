//===- Options.h - the command line of an executable ------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_CORE_OPTIONS_H
#define WEFT_RT_CORE_OPTIONS_H

#include "weft-rt/Program.h"

#include <optional>

namespace weft::rt {

/// What an executable is asked to do. Texts for users are in Options.cpp's table.
struct Options {
  enum class Action : uint8_t { Train, Help, Version, PrintPlan, PrintProgram };

  Action action = Action::Train;
  /// Files; empty if not given.
  std::string data, metrics, save, load, saveGradients;
  /// A folder; empty if not given.
  std::string checkpointDir;
  /// Absent: only after the last step, and all are kept.
  std::optional<int64_t> checkpointEvery, checkpointKeep;
  /// Go on from the checkpoint of a run with another seed, data or batch.
  bool allowChanges = false;
  int64_t steps = 0;
  uint64_t seed = 0;
  int64_t gradientsStep = 0;
  double timeoutSeconds = 60;
  std::optional<int64_t> ranks;
  /// No line for each step; no output at all.
  bool noProgress = false, quiet = false;
  bool curve = false;
};

/// Reads the arguments after the program's name. Defaults come from `program`. Fails on unknown
/// options, on values that an option does not take, and on options that contradict each other.
bool parseOptions(const Program &program, std::span<const char *const> arguments, Options &options,
                  std::string &error);

/// What --help prints; `name` is how the executable was called.
std::string helpText(const Program &program, const std::string &name);

/// "2 ranks (data=2)".
std::string meshText(const Program &program);

} // namespace weft::rt

#endif // WEFT_RT_CORE_OPTIONS_H
