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

/// The time that ranks and threads have to end after a failure.
inline constexpr std::chrono::seconds kGrace(5);

/// Trains on the ranks of `backend` as `options` say: runs the steps, reports them on standard
/// output and errors on standard error, and writes files. Ends the process itself if some rank does
/// not stop after a failure.
ExitCode train(std::span<const Program> programs, const KernelCode *kernels, const Options &options,
               const MakeExecutor &makeExecutor, Backend &backend);

} // namespace weft::rt

#endif // WEFT_RT_TRAINING_TRAINER_H
