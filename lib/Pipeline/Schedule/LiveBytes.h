//===- LiveBytes.h - memory in use while an op runs -----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_SCHEDULE_LIVEBYTES_H
#define WEFT_LIB_PIPELINE_SCHEDULE_LIVEBYTES_H

#include "weft/Dialect/Weft/IR/Weft.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace weft {

/// Estimates the live bytes at each op of a module whose tensors are local: variables, the values
/// of the op's function that were computed before and are still needed, and those of its callers,
/// at the call where these are most. The estimate is an upper bound, as no value reuses another's
/// place. It describes the module at the time of construction.
class LiveBytes {
public:
  /// Counts a function that calls itself once: a later pass refuses it.
  explicit LiveBytes(mlir::ModuleOp module);

  /// Returns the bytes while `op` runs, including its operands and results; 0 for an op that was
  /// added since.
  double at(mlir::Operation *op) const;

private:
  double around(mlir::func::FuncOp function);
  void measure(mlir::Block &block);

  double variables = 0;
  /// The bytes of an op's own function while the op runs, with and without the op's results.
  llvm::DenseMap<mlir::Operation *, double> during, before;
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<mlir::Operation *>> callsOf;
  llvm::DenseMap<mlir::Operation *, double> outside;
};

} // namespace weft

#endif // WEFT_LIB_PIPELINE_SCHEDULE_LIVEBYTES_H
