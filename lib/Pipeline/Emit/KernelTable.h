//===- KernelTable.h - the tables in an executable ------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_EMIT_KERNELTABLE_H
#define WEFT_LIB_PIPELINE_EMIT_KERNELTABLE_H

#include "KernelObject.h"

#include "weft-rt/Program.h"
#include "weft/Pipeline/Emit/DeviceCode.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Error.h"

namespace weft {

/// The entry of one kernel in the table.
struct KernelEntry {
  /// The kernel's function, which is defined in another object file.
  std::string wrapper;
  KernelOperands operands;
  /// For each phase its iterations on the host; for each phase on devices, which may have others,
  /// its iterations and how many threads take one together. The latter two are empty if devices do
  /// not run the kernel.
  llvm::ArrayRef<int64_t> iterations, deviceIterations, deviceThreads;
};

/// Adds to `module` the array `weft_kernels` of `weft::rt::KernelCode`, from `entries` in the order
/// of the kernels that the programs share, and the serialized programs. Fails if an instruction has
/// other numbers of buffers and immediates than its kernel takes.
llvm::Error addKernelTable(llvm::Module &module, llvm::ArrayRef<rt::Program> programs,
                           llvm::ArrayRef<KernelEntry> entries);

/// Adds to `module` the array `weft_images` of `weft::rt::DeviceImage` and their number,
/// `weft_image_count`.
void addImages(llvm::Module &module, const DeviceImages &images);

} // namespace weft

#endif // WEFT_LIB_PIPELINE_EMIT_KERNELTABLE_H
