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

/// Body of a map: from the scalars of the operands to those of the results.
using MapBody = llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::OpBuilder &, mlir::Location,
                                                                  mlir::ValueRange)>;

/// A map to tensors of type `outputs` in which operands of that many dimensions have them
/// all, and operands without dimensions are the same for every element.
/// REQUIRES: no other operands.
MapOp createMap(mlir::OpBuilder &builder, mlir::Location loc, mlir::TypeRange outputs,
                mlir::ValueRange inputs, MapBody body);

/// `tensor` with elements of the float type `element`: widened or rounded; what it is a widening
/// of, if that has them.
mlir::Value createCast(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value tensor,
                       mlir::Type element);

/// Whether `map` does nothing but widen or round one tensor.
bool isCast(MapOp map);

/// What `value` is a cast of, or `value`.
mlir::Value lookThroughCast(mlir::Value value);

/// The sum of tensors of one shape, in their order and in the widest of their types; the tensor
/// itself if it is one.
mlir::Value createSum(mlir::OpBuilder &builder, mlir::Location loc, mlir::ValueRange tensors);

/// `tensor` as numbers of `format`, scaled by its greatest absolute value or that of its history,
/// with elements of type `element`: its own or, of a wide tensor, a narrower one.
mlir::Value createQuantize(mlir::OpBuilder &builder, mlir::Location loc, Float8 format,
                           mlir::Value tensor, mlir::Type element, HistoryAttr history = {});

/// A tensor without dimensions that holds `value`.
mlir::Value createScalar(mlir::OpBuilder &builder, mlir::Location loc, mlir::Type element,
                         double value);

/// Zeros of the type of `like`, cut as that is.
mlir::Value createZeroLike(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value like);

} // namespace weft

#endif // WEFT_DIALECT_WEFT_IR_MAPBUILDERS_H
