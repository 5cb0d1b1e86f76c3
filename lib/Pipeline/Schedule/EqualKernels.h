//===- EqualKernels.h - kernels that compute the same ----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_SCHEDULE_EQUALKERNELS_H
#define WEFT_LIB_PIPELINE_SCHEDULE_EQUALKERNELS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include "llvm/ADT/DenseMap.h"

namespace weft {

/// Returns true if two kernels differ at most in their names and in locations.
bool areEqual(mlir::func::FuncOp a, mlir::func::FuncOp b);

/// A set of kernels, no two of which are equal.
class EqualKernels {
public:
  /// Returns the kernel in the set that is equal to `kernel`; inserts `kernel` if there is none.
  mlir::func::FuncOp findOrInsert(mlir::func::FuncOp kernel);

private:
  /// Kernels by their hash.
  llvm::DenseMap<size_t, llvm::SmallVector<mlir::func::FuncOp>> kernels;
};

} // namespace weft

#endif // WEFT_LIB_PIPELINE_SCHEDULE_EQUALKERNELS_H
