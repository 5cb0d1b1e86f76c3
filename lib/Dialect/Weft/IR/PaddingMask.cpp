//===- PaddingMask.cpp - a value that is zero in its padding --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Dialect/Weft/IR/PaddingMask.h"

#include "weft/Dialect/Weft/IR/AttributeNames.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace weft {

MapOp createPaddingMask(OpBuilder &builder, Location loc, Value value, int64_t dim, int64_t end) {
  auto type = cast<RankedTensorType>(value.getType());
  auto numbers = RankedTensorType::get({type.getDimSize(dim)}, builder.getI32Type());
  auto places = IotaOp::create(builder, loc, numbers, /*offset=*/Value{});
  AffineMap whole = builder.getMultiDimIdentityMap(type.getRank());
  AffineMap along = whole.getSubMap(unsigned(dim));
  auto mask = MapOp::create(
      builder, loc, type, {value, places}, {whole, along},
      [&](OpBuilder &inner, Location at, ValueRange in) {
        Value last = arith::ConstantIntOp::create(inner, at, inner.getI32Type(), end);
        Value isInside = arith::CmpIOp::create(inner, at, arith::CmpIPredicate::slt, in[1], last);
        Value zero = arith::ConstantOp::create(inner, at, inner.getFloatAttr(in[0].getType(), 0.0));
        return SmallVector<Value>{arith::SelectOp::create(inner, at, isInside, in[0], zero)};
      });
  for (Operation *op : {places.getOperation(), mask.getOperation()}) {
    op->setAttr(kOfPaddingAttrName, builder.getUnitAttr());
  }
  return mask;
}

bool isPaddingMask(Operation *op) {
  auto map = dyn_cast<MapOp>(op);
  if (!map || map.getNumOperands() != 2 || map.getNumResults() != 1) {
    return false;
  }
  Block &body = map.getBody().front();
  auto select = body.getTerminator()->getOperand(0).getDefiningOp<arith::SelectOp>();
  auto compare = select ? select.getCondition().getDefiningOp<arith::CmpIOp>() : arith::CmpIOp();
  return compare && compare.getPredicate() == arith::CmpIPredicate::slt &&
         compare.getLhs() == body.getArgument(1) && matchPattern(compare.getRhs(), m_Constant()) &&
         select.getTrueValue() == body.getArgument(0) &&
         matchPattern(select.getFalseValue(), m_AnyZeroFloat());
}

} // namespace weft
