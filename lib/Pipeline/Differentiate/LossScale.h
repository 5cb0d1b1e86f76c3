//===- LossScale.h - gradients that 16 bits do not lose ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The loss scale of docs/Numerics.md, for modules whose optimizer has one. It is a variable of the
// optimizer, "loss_scale", beside "loss_scale_steps", which counts steps since it last moved.
// Whether a step is skipped follows from the norm of all gradients, which all ranks know.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_DIFFERENTIATE_LOSSSCALE_H
#define WEFT_LIB_PIPELINE_DIFFERENTIATE_LOSSSCALE_H

#include "weft/Dialect/Weft/IR/Weft.h"

namespace weft {

/// Adds the variables of a loss scale, if the module's optimizer has one.
void declareLossScale(mlir::ModuleOp module);

/// Reads the loss scale of this step; returns null if the module has none.
mlir::Value readLossScale(mlir::ModuleOp module, mlir::OpBuilder &builder, mlir::Location loc);

/// Divides `gradient` by the scale that the loss was multiplied by.
mlir::Value unscale(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value gradient,
                    mlir::Value scale);

/// Returns the observed gradient norm: `norm`, or -1 if the step is skipped.
mlir::Value observedNorm(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value norm,
                         mlir::Value scale);

/// Assigns the scale of the next step.
void assignLossScale(mlir::OpBuilder &builder, mlir::Location loc, OptimizerOp optimizer,
                     mlir::Value norm, mlir::Value scale);

/// Returns the scalar `then` if `norm` is finite, else `otherwise`.
mlir::Value selectFinite(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value norm,
                         mlir::Value then, mlir::Value otherwise);

} // namespace weft

#endif // WEFT_LIB_PIPELINE_DIFFERENTIATE_LOSSSCALE_H
