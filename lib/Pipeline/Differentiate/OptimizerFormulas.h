//===- OptimizerFormulas.h - learning rate, clipping and update, as maps ===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_DIFFERENTIATE_OPTIMIZERFORMULAS_H
#define WEFT_LIB_PIPELINE_DIFFERENTIATE_OPTIMIZERFORMULAS_H

#include "UpdateRule.h"

#include <memory>

namespace weft {

/// Builds the formulas of `docs/Numerics.md`, "The optimizer": those of all optimizers, and by an
/// UpdateRule those of one. Scalars are f64 tensors without
/// dimensions, and are converted where they are combined with a parameter.
class OptimizerFormulas {
public:
  OptimizerFormulas(mlir::OpBuilder &builder, mlir::Location loc, OptimizerOp optimizer);
  ~OptimizerFormulas();

  /// Returns the square root of a sum of squares.
  mlir::Value norm(mlir::Value squares);

  /// Returns the scalars that all updates of a step share: the learning rate, then the corrections
  /// of the rule. `step` is the number of the step, an i64 from 0.
  llvm::SmallVector<mlir::Value> schedule(mlir::Value step);

  /// Returns min(1, clip / (norm + 1e-6)), or null if gradients are not clipped.
  mlir::Value clipScale(mlir::Value norm);

  /// Builds the new values of parameters and their states.
  UpdateRule &getRule() { return *rule; }

private:
  mlir::Value learningRate(mlir::Value step);

  mlir::OpBuilder &builder;
  mlir::Location loc;
  OptimizerOp optimizer;
  std::unique_ptr<UpdateRule> rule;
};

} // namespace weft

#endif // WEFT_LIB_PIPELINE_DIFFERENTIATE_OPTIMIZERFORMULAS_H
