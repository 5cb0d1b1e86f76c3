//===- ScalarOps.h - scalar code inside a map ---------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DIALECT_WEFT_IR_SCALAROPS_H
#define WEFT_DIALECT_WEFT_IR_SCALAROPS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/Region.h"

namespace weft {

/// How a scalar depends on a chosen set of a map's operands:
///   Constant   not at all
///   Additive   f(a + b) = f(a) + f(b), with f(0) = 0
///   Nonlinear  otherwise
enum class Linearity { Constant, Additive, Nonlinear };

/// Returns Constant if all operands are constant, else Nonlinear: correct for any function.
Linearity joinNonlinear(llvm::ArrayRef<Linearity> operands);

/// Returns how each value that the block yields depends on the block's arguments numbered in
/// `chosen`.
/// REQUIRES: every op of the block but the last has a ScalarOpInterface.
llvm::SmallVector<Linearity> analyzeLinearity(mlir::Block &block, llvm::ArrayRef<unsigned> chosen);

/// Returns for each value that the block yields whether it is zero if the arguments numbered
/// `zeros` are zero and all others are finite.
/// REQUIRES: every op of the block but the last has a ScalarOpInterface.
llvm::SmallVector<bool> findZeros(mlir::Block &block, llvm::ArrayRef<unsigned> zeros);

/// Builds, at the builder's insertion point, the gradients of the block's arguments from those of
/// the values that it yields (null: none). `arguments` are the scalars that replace the block's
/// arguments; the block's code is cloned as far as it is needed. Returns null for arguments without
/// a gradient.
llvm::SmallVector<mlir::Value> buildBlockGradient(mlir::OpBuilder &builder, mlir::Block &block,
                                                  mlir::ValueRange arguments,
                                                  mlir::ValueRange yieldedGradients);

/// Attaches ScalarOpInterface to ops of `arith` and `math`.
void registerScalarOpModels(mlir::DialectRegistry &registry);

} // namespace weft

#include "weft/Dialect/Weft/IR/WeftScalarInterfaces.h.inc"

#endif // WEFT_DIALECT_WEFT_IR_SCALAROPS_H
