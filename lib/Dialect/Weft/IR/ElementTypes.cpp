//===- ElementTypes.cpp - narrow and wide float types ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Dialect/Weft/IR/ElementTypes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace weft {

bool isNarrow(Type element) { return element.isBF16() || element.isF16(); }

Type wideTypeOf(Type element) {
  return isNarrow(element) ? Type(Float32Type::get(element.getContext())) : element;
}

Value castScalar(OpBuilder &builder, Location loc, Value scalar, Type type) {
  if (scalar.getType() == type) {
    return scalar;
  }
  auto widened = scalar.getDefiningOp<arith::ExtFOp>();
  if (widened && widened.getIn().getType() == type) {
    return widened.getIn();
  }
  if (scalar.getType().getIntOrFloatBitWidth() > type.getIntOrFloatBitWidth()) {
    return arith::TruncFOp::create(builder, loc, type, scalar);
  }
  return arith::ExtFOp::create(builder, loc, type, scalar);
}

Value addScalars(OpBuilder &builder, Location loc, Value a, Value b) {
  Type wide = wideTypeOf(a.getType()), other = wideTypeOf(b.getType());
  if (other.getIntOrFloatBitWidth() > wide.getIntOrFloatBitWidth()) {
    wide = other;
  }
  Value first = castScalar(builder, loc, a, wide);
  return arith::AddFOp::create(builder, loc, first, castScalar(builder, loc, b, wide));
}

LogicalResult verifyElementType(Operation *op, StringRef name, Value value, Type element) {
  if (!value || getElementTypeOrSelf(value) == element) {
    return success();
  }
  return op->emitOpError() << name << " must be of " << element << ", got "
                           << getElementTypeOrSelf(value);
}

} // namespace weft
