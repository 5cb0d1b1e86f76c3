//===- OptimizerFormulas.h - learning rate, clipping and update, as maps ===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_DIFFERENTIATE_OPTIMIZERFORMULAS_H
#define WEFT_LIB_PIPELINE_DIFFERENTIATE_OPTIMIZERFORMULAS_H

#include "weft/Dialect/Weft/IR/Weft.h"

namespace weft {

/// The formulas of `docs/Numerics.md`, "The optimizer". Scalars are f64 tensors without
/// dimensions until they meet a parameter.
class OptimizerFormulas {
public:
  OptimizerFormulas(mlir::OpBuilder &builder, mlir::Location loc, OptimizerOp optimizer)
      : builder(builder), loc(loc), optimizer(optimizer) {}

  /// Names of the states that a parameter has: "adam_m", "adam_v", or "momentum", or none.
  llvm::SmallVector<llvm::StringRef> getStates(VariableOp variable);

  /// sqrt of a sum of squares.
  mlir::Value norm(mlir::Value squares);

  /// What every update takes besides the parameter: the learning rate, and for AdamW the
  /// corrections 1 / (1 - beta^t); from the step's number (i64, from 0).
  llvm::SmallVector<mlir::Value> schedule(mlir::Value step);

  /// min(1, clip / (norm + 1e-6)), or null if gradients are not clipped.
  mlir::Value clipScale(mlir::Value norm);

  /// What the norm of all gradients does to an update; each is null for nothing.
  struct ByNorm {
    /// What clipScale gave.
    mlir::Value scale;
    /// A norm: where it is not finite, all stays as it was.
    mlir::Value finite;
  };

  /// New values of a parameter and its states. Of `variable` only its decay and its matrix count.
  llvm::SmallVector<mlir::Value> update(mlir::ValueRange schedule, const ByNorm &byNorm,
                                        mlir::Value parameter, mlir::Value gradient,
                                        mlir::ValueRange states, VariableOp variable);

private:
  bool isMuonMatrix(VariableOp variable);
  llvm::SmallVector<mlir::Value> updateMatrix(mlir::Value rate, const ByNorm &byNorm,
                                              mlir::Value parameter, mlir::Value gradient,
                                              mlir::Value momentum, VariableOp variable);
  mlir::Value learningRate(mlir::Value step);
  mlir::Value correction(mlir::Value step, double beta);

  mlir::OpBuilder &builder;
  mlir::Location loc;
  OptimizerOp optimizer;
};

} // namespace weft

#endif // WEFT_LIB_PIPELINE_DIFFERENTIATE_OPTIMIZERFORMULAS_H
