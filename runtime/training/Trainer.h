//===- Trainer.h - a training run -------------------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_TRAINING_TRAINER_H
#define WEFT_RT_TRAINING_TRAINER_H

#include "execution/Executor.h"
#include "training/Options.h"
#include "weft-rt/ExitCode.h"
#include "weft-rt/Program.h"

#include <chrono>

namespace weft::rt {

/// How long, after a failure, ranks and threads may take to come to their end.
inline constexpr std::chrono::seconds kGrace(5);

/// Trains as `options` say on the ranks of `backend`: runs the steps, reports them on standard
/// output and errors on standard error, and writes files. Ends the process itself if after a
/// failure some rank cannot be stopped.
ExitCode train(const Program &program, const KernelCode *kernels, const Options &options,
               const MakeExecutor &makeExecutor, Backend &backend);

} // namespace weft::rt

#endif // WEFT_RT_TRAINING_TRAINER_H
