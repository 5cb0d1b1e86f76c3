//===- FirstDifference.h - the first op that computes another value ------===//
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
  /// A sentence that names the op which computed it.
  std::string sentence;
  /// Whether it may be no mistake, where all before it is the same: a number that lies between two
  /// in FP8 is rounded up by one program and down by the other.
  bool mayBeTie = false;
};

/// Compiles the programs of both requests again so that they show every value of a step, runs both
/// as `run` says, which is for one step of any program, and names the first value that differs and
/// what made it. Padding is left out. Where none differs it says so: then what is
/// observed is right, and the mistake lies behind Partition.
llvm::Expected<FirstDifference> firstDifference(SmallProgramRequest split,
                                                SmallProgramRequest single, RunRequest run);

/// The same, in a sentence, of the last step of two runs of one program, the second of which begins
/// later, with what the first had then.
llvm::Expected<std::string> firstResumedDifference(SmallProgramRequest split, RunRequest unbroken,
                                                   RunRequest resumed);

} // namespace weft

#endif // WEFT_DRIVER_FIRSTDIFFERENCE_H
