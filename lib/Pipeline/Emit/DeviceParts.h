//===- DeviceParts.h - the steps of compiling for devices -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_EMIT_DEVICEPARTS_H
#define WEFT_LIB_PIPELINE_EMIT_DEVICEPARTS_H

#include "CodeGeneration.h"

namespace weft {

/// Adds an entry for each phase of each kernel of `module`, whose functions are kernels with bare
/// pointers, and makes the kernels internal. `threads` is the result of threadsOf.
void addEntries(llvm::Module &module, const KernelIterations &iterations,
                const KernelIterations &threads);

/// Replaces the calls by which the threads of a block cooperate by instructions; see
/// lower-kernels-to-loops.
void linkBlocks(llvm::Module &module);

/// Links into `module` the mathematical functions that it calls and that devices have no
/// instructions for, from the bitcode file `libdevice`. Fails if one is missing.
llvm::Error linkMath(llvm::Module &module, llvm::StringRef libdevice);

} // namespace weft

#endif // WEFT_LIB_PIPELINE_EMIT_DEVICEPARTS_H
