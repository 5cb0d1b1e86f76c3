//===- LiveBytes.h - how much memory a rank holds while an op runs --------===//
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

/// Of a module whose tensors are local: variables, and at each op the values of its function that
/// were computed before and are still needed, with those of the functions around it where most is
/// needed. A guess from above: no value takes another's place yet. It is of the module as it was
/// when this was made.
class LiveBytes {
public:
  /// A function that calls itself is refused later, and counted once here.
  explicit LiveBytes(mlir::ModuleOp module);

  /// While `op` runs, its operands and results among them. An op that was added since: 0.
  double at(mlir::Operation *op) const;

private:
  double around(mlir::func::FuncOp function);
  void measure(mlir::Block &block);

  double variables = 0;
  /// Of each op, what its own function holds while it runs, with and without its results.
  llvm::DenseMap<mlir::Operation *, double> during, before;
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<mlir::Operation *>> callsOf;
  llvm::DenseMap<mlir::Operation *, double> outside;
};

} // namespace weft

#endif // WEFT_LIB_PIPELINE_SCHEDULE_LIVEBYTES_H
