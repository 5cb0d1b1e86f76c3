//===- ElementTypes.h - narrow and wide float types -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DIALECT_WEFT_IR_ELEMENTTYPES_H
#define WEFT_DIALECT_WEFT_IR_ELEMENTTYPES_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"

namespace weft {

/// Returns true if `element` is a float type for storage alone, in which nothing is computed: bf16
/// or f16.
bool isNarrow(mlir::Type element);

/// Returns the type in which values of the float type `element` are computed: f32 for a narrow one,
/// else `element`.
mlir::Type wideTypeOf(mlir::Type element);

/// Widens or rounds `scalar` to the float type `type`. If `scalar` is itself widened from a value
/// of `type`, returns that value.
mlir::Value castScalar(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value scalar,
                       mlir::Type type);

/// Builds a + b in the wide type of the wider operand.
mlir::Value addScalars(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value a, mlir::Value b);

/// Checks that `value` has elements of type `element`; emits an error that calls it `name` if not.
/// Succeeds for a null value.
mlir::LogicalResult verifyElementType(mlir::Operation *op, llvm::StringRef name, mlir::Value value,
                                      mlir::Type element);

} // namespace weft

#endif // WEFT_DIALECT_WEFT_IR_ELEMENTTYPES_H
