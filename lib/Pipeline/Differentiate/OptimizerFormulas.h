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

/// Builds the formulas of `docs/Numerics.md`, "The optimizer". Scalars are f64 tensors without
/// dimensions, and are converted where they are combined with a parameter.
class OptimizerFormulas {
public:
  OptimizerFormulas(mlir::OpBuilder &builder, mlir::Location loc, OptimizerOp optimizer)
      : builder(builder), loc(loc), optimizer(optimizer) {}

  /// Returns the names of a parameter's states: "adam_m", "adam_v", or "momentum", or none.
  llvm::SmallVector<llvm::StringRef> getStates(VariableOp variable);

  /// Returns the square root of a sum of squares.
  mlir::Value norm(mlir::Value squares);

  /// Returns the scalars that all updates of a step share: the learning rate, and for AdamW the
  /// corrections 1 / (1 - beta^t). `step` is the number of the step, an i64 from 0.
  llvm::SmallVector<mlir::Value> schedule(mlir::Value step);

  /// Returns min(1, clip / (norm + 1e-6)), or null if gradients are not clipped.
  mlir::Value clipScale(mlir::Value norm);

  /// The effects of the norm of all gradients on an update; each may be null.
  struct ByNorm {
    /// The result of clipScale, which scales gradients.
    mlir::Value scale;
    /// A norm. If it is not finite, the update keeps the old values.
    mlir::Value finite;
  };

  /// Returns the new values of a parameter and its states. Reads only the decay and the matrix of
  /// `variable`.
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
