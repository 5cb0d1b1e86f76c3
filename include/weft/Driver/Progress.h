//===- Progress.h - prints the duration of each phase ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DRIVER_PROGRESS_H
#define WEFT_DRIVER_PROGRESS_H

#include "weft/Pipeline/Phases.h"

#include <chrono>

namespace weft {

/// Prints one line to standard error at the end of each phase, as "import 0.01 s", if `enabled`.
class Progress {
public:
  Progress(Phase phase, bool enabled)
      : phase(phase), enabled(enabled), start(std::chrono::steady_clock::now()) {}

  void finish() const;

private:
  Phase phase;
  bool enabled;
  std::chrono::steady_clock::time_point start;
};

/// Returns true if the user wants to see progress: by option -v, or because standard error is a
/// terminal.
bool wantsProgress(bool verbose);

} // namespace weft

#endif // WEFT_DRIVER_PROGRESS_H
