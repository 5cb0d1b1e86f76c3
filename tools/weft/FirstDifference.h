//===- FirstDifference.h - the op that two programs differ by ------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_TOOLS_WEFT_FIRSTDIFFERENCE_H
#define WEFT_TOOLS_WEFT_FIRSTDIFFERENCE_H

#include "SmallPrograms.h"
#include "TrainingRun.h"

namespace weft {

/// Compiles the programs of both requests again so that they show every value of a step, runs both
/// as `run` says, which is for one step of any program, and names the first value that differs and
/// what made it, in a sentence. Padding is left out. Where none differs it says so: then what is
/// observed is right, and the mistake lies behind Partition.
llvm::Expected<std::string> firstDifference(SmallProgramRequest split, SmallProgramRequest single,
                                            RunRequest run);

/// The same of the last step of two runs of one program, the second of which begins later, with
/// what the first had then.
llvm::Expected<std::string> firstResumedDifference(SmallProgramRequest split, RunRequest unbroken,
                                                   RunRequest resumed);

} // namespace weft

#endif // WEFT_TOOLS_WEFT_FIRSTDIFFERENCE_H
