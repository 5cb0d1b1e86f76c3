//===- MapBuilders.h - maps that several passes build -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DIALECT_WEFT_IR_MAPBUILDERS_H
#define WEFT_DIALECT_WEFT_IR_MAPBUILDERS_H

#include "weft/Dialect/Weft/IR/Weft.h"

namespace weft {

/// Builds the body of a map, from the scalars of the operands to those of the results.
using MapBody = llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::OpBuilder &, mlir::Location,
                                                                  mlir::ValueRange)>;

/// Builds a map to tensors of type `outputs`. Operands either have all dimensions of the results,
/// or none; these are the same for every element. REQUIRES: no other operands.
MapOp createMap(mlir::OpBuilder &builder, mlir::Location loc, mlir::TypeRange outputs,
                mlir::ValueRange inputs, MapBody body);

/// Widens or rounds `tensor` to the float type `element`. If `tensor` is itself widened from a
/// tensor of that type, returns that tensor.
mlir::Value createCast(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value tensor,
                       mlir::Type element);

/// Returns true if `map` only widens or rounds one tensor.
bool isCast(MapOp map);

/// Returns the operand of the cast that makes `value`, or `value` if no cast does.
mlir::Value lookThroughCast(mlir::Value value);

/// Builds the sum of tensors of one shape, in their order and in the widest of their types. Returns
/// a single tensor as it is.
mlir::Value createSum(mlir::OpBuilder &builder, mlir::Location loc, mlir::ValueRange tensors);

/// Returns true if `map` only adds up its operands, all of its result's shape, each once.
bool isSum(MapOp map);

/// Returns the bits and the range of the numbers of `format`.
const llvm::fltSemantics &semanticsOf(Float8 format);

/// Rounds `tensor` to numbers of `format`, scaled by its greatest absolute value or that of its
/// history. `element` is the result's type: the tensor's own or, for a wide tensor, a narrower one.
mlir::Value createQuantize(mlir::OpBuilder &builder, mlir::Location loc, Float8 format,
                           mlir::Value tensor, mlir::Type element, HistoryAttr history = {});

/// Builds a tensor without dimensions that holds `value`.
mlir::Value createScalar(mlir::OpBuilder &builder, mlir::Location loc, mlir::Type element,
                         double value);

/// Builds zeros of the type and sharding of `like`.
mlir::Value createZeroLike(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value like);

} // namespace weft

#endif // WEFT_DIALECT_WEFT_IR_MAPBUILDERS_H
