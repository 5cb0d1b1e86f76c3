//===- KernelTable.h - what an executable carries besides kernels --------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_EMIT_KERNELTABLE_H
#define WEFT_LIB_PIPELINE_EMIT_KERNELTABLE_H

#include "CodeGeneration.h"

#include "weft-rt/Program.h"
#include "weft/Pipeline/Emit/DeviceCode.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Error.h"

namespace weft {

/// Adds to `module`, whose functions are kernels with bare pointers, the array `weft_kernels` of
/// `weft::rt::KernelCode`, whose functions take their arguments from arrays, and the serialized
/// program.
///
/// A kernel takes the coordinates, then for each of its arguments an integer for an immediate or
/// a pointer for a buffer, then the part to run. Fails if the program names a kernel that is not
/// there or has no iterations, or an instruction does not give a kernel as many buffers and
/// immediates as it takes. What devices run has phases of its own, of which `deviceIterations` and
/// `deviceThreads` tell; empty where there are none.
llvm::Error addKernelTable(llvm::Module &module, const rt::Program &program,
                           const KernelIterations &iterations,
                           const KernelIterations &deviceIterations,
                           const KernelIterations &deviceThreads);

/// Adds to `module` the array `weft_images` of `weft::rt::DeviceImage` and their number,
/// `weft_image_count`.
void addImages(llvm::Module &module, const DeviceImages &images);

} // namespace weft

#endif // WEFT_LIB_PIPELINE_EMIT_KERNELTABLE_H
