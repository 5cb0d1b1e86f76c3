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

/// Constant if all are, else nonlinear: right for any function.
Linearity joinNonlinear(llvm::ArrayRef<Linearity> operands);

/// How each value that the block yields depends on its arguments numbered in `chosen`.
/// REQUIRES: every op of the block but the last has a ScalarOpInterface.
llvm::SmallVector<Linearity> analyzeLinearity(mlir::Block &block, llvm::ArrayRef<unsigned> chosen);

/// Whether each value that the block yields is zero where its arguments numbered `zeros` are,
/// provided that the others are finite.
/// REQUIRES: every op of the block but the last has a ScalarOpInterface.
llvm::SmallVector<bool> findZeros(mlir::Block &block, llvm::ArrayRef<unsigned> zeros);

/// Builds, at the builder's place, the gradients of the block's arguments from those of
/// the values that it yields (null: none). `mapping` holds the scalars that stand for the
/// block's arguments; the block's code is cloned as far as it is needed. Leaves null for
/// arguments without a gradient.
llvm::SmallVector<mlir::Value> buildBlockGradient(mlir::OpBuilder &builder, mlir::Block &block,
                                                  mlir::ValueRange arguments,
                                                  mlir::ValueRange yieldedGradients);

/// Teaches the ops of `arith` and `math` their ScalarOpInterface.
void registerScalarOpModels(mlir::DialectRegistry &registry);

} // namespace weft

#include "weft/Dialect/Weft/IR/WeftScalarInterfaces.h.inc"

#endif // WEFT_DIALECT_WEFT_IR_SCALAROPS_H
