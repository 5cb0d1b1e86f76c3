//===- Trainer.h - what an executable does ----------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_CORE_TRAINER_H
#define WEFT_RT_CORE_TRAINER_H

#include "core/Executor.h"
#include "core/Options.h"
#include "weft-rt/DeviceImage.h"
#include "weft-rt/ExitCode.h"
#include "weft-rt/Program.h"

#include <functional>
#include <memory>
#include <span>

namespace weft::rt {

/// Makes what runs the program on a rank of this process, with so many threads for it.
using MakeExecutor = std::function<std::unique_ptr<Executor>(
    const Program &program, const KernelCode *kernels, int64_t rank, int64_t threads)>;
/// Looks for what that needs; empty and an error where it is not there.
using FindExecutors = std::function<MakeExecutor(std::string &error)>;

/// Trains as `options` say: starts all ranks, runs the steps, tells about them on standard output,
/// errors on standard error, and writes files. What `find` does not find is told once the processes
/// have met, so that one tells what some lack. Ends the process itself if after a failure some rank
/// cannot be stopped.
ExitCode train(const Program &program, const KernelCode *kernels, const Options &options,
               const FindExecutors &find);

/// The whole of an executable: reads the program, reads the command line, does what it says.
/// `program` is what `serialize` wrote; `kernels[i]` is the code of its kernel i. Where there are
/// `images` it runs on devices, else on the host.
int runExecutable(std::span<const char> program, const KernelCode *kernels,
                  std::span<const DeviceImage> images, std::span<const char *const> arguments);

} // namespace weft::rt

#endif // WEFT_RT_CORE_TRAINER_H
