//===- Executable.h - the main function of executables --------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_EXECUTABLE_EXECUTABLE_H
#define WEFT_RT_EXECUTABLE_EXECUTABLE_H

#include "training/Trainer.h"
#include "weft-rt/DeviceImage.h"

namespace weft::rt {

/// Finds the executors of a run; fails if a library or a device is missing.
using FindExecutors = std::function<Result<MakeExecutor>()>;

/// Finds the executors and the backend that `options` choose, and trains. Processes connect first,
/// so that a single process reports missing libraries and devices.
ExitCode train(std::span<const Program> programs, const KernelCode *kernels, const Options &options,
               const FindExecutors &find);

/// Runs an executable: loads its programs, parses the command line and executes it. `program` holds
/// the bytes that `serialize` wrote; `kernels[i]` is the code of kernel i of every program. If
/// there are `images`, the program runs on devices, else on the host.
int runExecutable(std::span<const char> program, const KernelCode *kernels,
                  std::span<const DeviceImage> images, std::span<const char *const> arguments);

} // namespace weft::rt

#endif // WEFT_RT_EXECUTABLE_EXECUTABLE_H
