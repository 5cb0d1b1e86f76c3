//===- MapBuilders.cpp - maps that several passes build -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Dialect/Weft/IR/MapBuilders.h"

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

Value createSum(OpBuilder &builder, Location loc, ValueRange tensors) {
  if (tensors.size() == 1) {
    return tensors.front();
  }
  auto body = [](OpBuilder &inner, Location at, ValueRange scalars) {
    Value sum = scalars.front();
    for (Value scalar : scalars.drop_front()) {
      sum = arith::AddFOp::create(inner, at, sum, scalar);
    }
    return SmallVector<Value>{sum};
  };
  return createMap(builder, loc, tensors.front().getType(), tensors, body).getResult(0);
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
