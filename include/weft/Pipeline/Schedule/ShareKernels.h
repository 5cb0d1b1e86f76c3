//===- ShareKernels.h - one table of kernels for all stages ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PIPELINE_SCHEDULE_SHAREKERNELS_H
#define WEFT_PIPELINE_SCHEDULE_SHAREKERNELS_H

#include "weft-rt/Program.h"

#include "mlir/IR/BuiltinOps.h"

namespace weft {

/// Gives equal kernels in the modules of stages one name, and different ones different names. See
/// share-kernels.
void shareKernels(llvm::ArrayRef<mlir::ModuleOp> stages);

/// Fails with an error on a kernel that differs from one of the same name in an earlier stage.
mlir::LogicalResult verifySharedKernels(llvm::ArrayRef<mlir::ModuleOp> stages);

/// Makes the programs of pipeline stages those of one executable, which has one table of kernels:
/// each program gets those of all, each name once, in the order of stages. REQUIRES: the programs
/// are of modules that verifySharedKernels accepts.
void shareKernelTable(rt::Programs &programs);

} // namespace weft

#endif // WEFT_PIPELINE_SCHEDULE_SHAREKERNELS_H
