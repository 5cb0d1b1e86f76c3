//===- FirstDifference.h - finds the first op whose results differ -------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DRIVER_FIRSTDIFFERENCE_H
#define WEFT_DRIVER_FIRSTDIFFERENCE_H

#include "weft/Driver/SmallPrograms.h"
#include "weft/Driver/TrainingRun.h"

namespace weft {

/// The first value that differs between two programs.
struct FirstDifference {
  /// A sentence that names the op that computed the value.
  std::string sentence;
  /// True if the difference may be rounding, because all values before it agree: one program may
  /// round a number between two FP8 numbers up and the other round it down.
  bool mayBeTie = false;
};

/// Compiles the programs of both requests again so that they write every value of a step, runs both
/// for the one step of `run`, and names the first value that differs and the op that made it.
/// Ignores padding. If no observed value differs, the sentence says so: then the mistake was made
/// after Partition.
llvm::Expected<FirstDifference> firstDifference(SmallProgramRequest split,
                                                SmallProgramRequest single, RunRequest run);

/// Names the first value that differs in the last step of two runs of one program, in a sentence.
/// The second run begins later than the first, with the first run's weights of that step.
llvm::Expected<std::string> firstResumedDifference(SmallProgramRequest split, RunRequest unbroken,
                                                   RunRequest resumed);

} // namespace weft

#endif // WEFT_DRIVER_FIRSTDIFFERENCE_H
