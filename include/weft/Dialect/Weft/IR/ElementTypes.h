//===- ElementTypes.h - which float type where -------------------------===//
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

/// Whether this is a float type that values are held in, but not computed: bf16 or f16.
bool isNarrow(mlir::Type element);

/// What values of the float type `element` are computed in: f32 for a narrow one, else the type
/// itself.
mlir::Type wideTypeOf(mlir::Type element);

/// `scalar` in the float type `type`: widened or rounded; what it was widened from, if it was
/// from `type`.
mlir::Value castScalar(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value scalar,
                       mlir::Type type);

/// a + b in the wide type of the wider of theirs.
mlir::Value addScalars(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value a, mlir::Value b);

/// Whether `value` (null: nothing to check) has elements of type `element`; if not, an error that
/// calls it `name`.
mlir::LogicalResult verifyElementType(mlir::Operation *op, llvm::StringRef name, mlir::Value value,
                                      mlir::Type element);

} // namespace weft

#endif // WEFT_DIALECT_WEFT_IR_ELEMENTTYPES_H
