//===- DeviceParts.h - the steps of compiling for devices -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_EMIT_DEVICEPARTS_H
#define WEFT_LIB_PIPELINE_EMIT_DEVICEPARTS_H

#include "CodeCache.h"
#include "CodeGeneration.h"

#include "weft/Pipeline/Emit/DeviceCode.h"

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

/// As the function without a cache, with PTX and machine code that `cache` has.
llvm::Expected<DeviceImages> emitImages(mlir::ModuleOp module, const CudaToolkit &toolkit,
                                        CodeCache &cache);

} // namespace weft

#endif // WEFT_LIB_PIPELINE_EMIT_DEVICEPARTS_H
