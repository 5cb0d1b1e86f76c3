//===- Executable.h - what an executable does ------------------------------===//
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

/// Looks for the executors of a run; empty and an error if a library or a device is missing.
using FindExecutors = std::function<MakeExecutor(std::string &error)>;

/// Finds the executors and the backend that `options` ask for, and trains. Processes first connect,
/// so that one of them reports what others did not find.
ExitCode train(const Program &program, const KernelCode *kernels, const Options &options,
               const FindExecutors &find);

/// The whole of an executable: reads the program, reads the command line, does what it says.
/// `program` is what `serialize` wrote; `kernels[i]` is the code of its kernel i. Where there are
/// `images` it runs on devices, else on the host.
int runExecutable(std::span<const char> program, const KernelCode *kernels,
                  std::span<const DeviceImage> images, std::span<const char *const> arguments);

} // namespace weft::rt

#endif // WEFT_RT_EXECUTABLE_EXECUTABLE_H
