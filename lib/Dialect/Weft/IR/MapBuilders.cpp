//===- MapBuilders.cpp - maps that several passes build -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Dialect/Weft/IR/MapBuilders.h"

#include "weft/Dialect/Weft/IR/ElementTypes.h"

using namespace mlir;

namespace weft {

MapOp createMap(OpBuilder &builder, Location loc, TypeRange outputs, ValueRange inputs,
                MapBody body) {
  int64_t rank = cast<RankedTensorType>(outputs.front()).getRank();
  AffineMap whole = builder.getMultiDimIdentityMap(rank);
  AffineMap none = AffineMap::get(rank, 0, builder.getContext());
  SmallVector<AffineMap> maps;
  for (Value input : inputs) {
    bool isScalar = cast<RankedTensorType>(input.getType()).getRank() == 0;
    maps.push_back(isScalar ? none : whole);
  }
  return MapOp::create(builder, loc, outputs, inputs, maps, body);
}

/// The most operands of a map that adds up: the time to plan and to compile a map grows with the
/// square of their number.
static constexpr size_t kMostTerms = 64;

Value createSum(OpBuilder &builder, Location loc, ValueRange tensors) {
  if (tensors.size() == 1) {
    return tensors.front();
  }
  if (tensors.size() > kMostTerms) {
    // Of partial sums, in the same order.
    Value sum = tensors.front();
    for (size_t begin = 1; begin < tensors.size(); begin += kMostTerms - 1) {
      SmallVector<Value> terms = {sum};
      llvm::append_range(terms, tensors.drop_front(begin).take_front(kMostTerms - 1));
      sum = createSum(builder, loc, terms);
    }
    return sum;
  }
  auto width = [](Value tensor) { return getElementTypeOrSelf(tensor).getIntOrFloatBitWidth(); };
  Value widest = *llvm::max_element(tensors, [&](Value a, Value b) { return width(a) < width(b); });
  auto body = [&](OpBuilder &inner, Location at, ValueRange scalars) {
    Value sum = scalars.front();
    for (Value scalar : scalars.drop_front()) {
      sum = addScalars(inner, at, sum, scalar);
    }
    return SmallVector<Value>{castScalar(inner, at, sum, getElementTypeOrSelf(widest))};
  };
  return createMap(builder, loc, widest.getType(), tensors, body).getResult(0);
}

bool isSum(MapOp map) {
  auto isIdentity = [](AffineMapAttr use) { return use.getValue().isIdentity(); };
  Block &body = map.getBody().front();
  // Each number is used once, and each op but casts has two operands: so one result has them all.
  auto isUsedOnce = [](Value value) { return value.hasOneUse(); };
  return map.getNumOperands() > 1 && map.getNumResults() == 1 &&
         llvm::all_of(map.getMaps().getAsRange<AffineMapAttr>(), isIdentity) &&
         llvm::all_of(body.getArguments(), isUsedOnce) &&
         llvm::all_of(body.without_terminator(), [](Operation &op) {
           return isa<arith::AddFOp, arith::ExtFOp, arith::TruncFOp>(op) && op.hasOneUse();
         });
}

Value createCast(OpBuilder &builder, Location loc, Value tensor, Type element) {
  auto type = cast<RankedTensorType>(tensor.getType());
  Value source = lookThroughCast(tensor);
  bool isExact = source != tensor && getElementTypeOrSelf(source).getIntOrFloatBitWidth() <
                                         type.getElementTypeBitWidth();
  if (type.getElementType() == element) {
    return tensor;
  }
  if (isExact && getElementTypeOrSelf(source) == element) {
    return source;
  }
  auto result = RankedTensorType::get(type.getShape(), element, type.getEncoding());
  return createMap(builder, loc, result, tensor,
                   [&](OpBuilder &inner, Location at, ValueRange scalars) {
                     return SmallVector<Value>{castScalar(inner, at, scalars[0], element)};
                   })
      .getResult(0);
}

bool isCast(MapOp map) {
  Block &body = map.getBody().front();
  return map.getNumOperands() == 1 && map.getNumResults() == 1 &&
         cast<AffineMapAttr>(map.getMaps()[0]).getValue().isIdentity() &&
         llvm::hasSingleElement(body.without_terminator()) &&
         isa<arith::ExtFOp, arith::TruncFOp>(body.front());
}

Value lookThroughCast(Value value) {
  auto map = value.getDefiningOp<MapOp>();
  return map && isCast(map) ? map.getInputs()[0] : value;
}

Value createScalar(OpBuilder &builder, Location loc, Type element, double value) {
  auto body = [&](OpBuilder &inner, Location at, ValueRange) {
    return SmallVector<Value>{
        arith::ConstantOp::create(inner, at, inner.getFloatAttr(element, value))};
  };
  Type type = RankedTensorType::get({}, element);
  return createMap(builder, loc, type, {}, body).getResult(0);
}

Value createZeroLike(OpBuilder &builder, Location loc, Value like) {
  auto body = [&](OpBuilder &inner, Location at, ValueRange scalars) {
    return SmallVector<Value>{
        arith::ConstantOp::create(inner, at, inner.getFloatAttr(scalars[0].getType(), 0))};
  };
  return createMap(builder, loc, like.getType(), like, body).getResult(0);
}

} // namespace weft
