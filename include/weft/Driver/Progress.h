//===- Progress.h - prints the duration of each phase ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DRIVER_PROGRESS_H
#define WEFT_DRIVER_PROGRESS_H

#include "weft/Pipeline/Phases.h"

#include "llvm/Support/Chrono.h"

namespace weft {

/// Prints one line to standard error at the end of each phase, if `enabled`, as
/// "import           0.01 s     0.012 s of processor time". The latter is that of this process.
class Progress {
public:
  Progress(Phase phase, bool enabled) : Progress(nameOf(phase), enabled) {}
  /// Of a part of a phase, as "meaning".
  Progress(llvm::StringRef name, bool enabled);

  void finish() const;

private:
  struct Times {
    llvm::sys::TimePoint<> now;
    std::chrono::nanoseconds processor;
  };
  static Times timesNow();

  llvm::StringRef name;
  bool enabled;
  Times start;
};

/// Returns true if the user wants to see progress: by option -v, or because standard error is a
/// terminal.
bool wantsProgress(bool verbose);

} // namespace weft

#endif // WEFT_DRIVER_PROGRESS_H
