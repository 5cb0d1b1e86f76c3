//===- RotaryOps.cpp - rotary position embeddings -----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Dialect/Weft/IR/ElementTypes.h"
#include "weft/Dialect/Weft/IR/MapBuilders.h"
#include "weft/Dialect/Weft/IR/Sharding.h"

using namespace mlir;
using namespace weft;

LogicalResult RotaryTableOp::verify() {
  auto type = cast<RankedTensorType>(getOutput().getType());
  if (type.getRank() != 3 || type.getDimSize(0) != 2 ||
      type.getDimSize(2) != static_cast<int64_t>(getFrequencies().size())) { // rotary_table_c1
    return emitOpError() << "expected a result of [2, positions, " << getFrequencies().size()
                         << "], got " << type;
  }
  return success();
}

FactorRule RotaryTableOp::getFactorRule() { return makeFactorRule(*this, {""}, {"xsf"}, "xf"); }

OpCost RotaryTableOp::getCost() { return elementwiseCost(*this, 20); }

SmallVector<unsigned> RotaryTableOp::getPositionFactors() { return {1}; }

void RotaryTableOp::setPosition(ValueRange offsets, ArrayRef<int64_t>) {
  getOffsetMutable().assign(offsets);
}

Position RotaryTableOp::getPosition() { return {OperandRange(getOffsetMutable()), {}}; }

LogicalResult RotaryOp::verify() {
  auto input = cast<RankedTensorType>(getInput().getType());
  auto table = cast<RankedTensorType>(getTable().getType());
  if (table.getDimSize(0) != 2 ||
      2 * table.getDimSize(2) > input.getDimSize(input.getRank() - 1)) { // rotary_c1
    return emitOpError() << "expected a table of [2, positions, m] with 2m at most "
                         << input.getDimSize(input.getRank() - 1) << ", got " << table;
  }
  Type element = input.getElementType(); // rotary_c3
  return failure(failed(verifyElementType(*this, "output", getOutput(), element)) ||
                 failed(verifyElementType(*this, "table", getTable(), wideTypeOf(element))));
}

FactorRule RotaryOp::getFactorRule() {
  int64_t rank = cast<RankedTensorType>(getInput().getType()).getRank();
  // batch, position, heads…, features. Too few dimensions are reported by the rank check.
  std::string dims = "bs" + letters(rank > 3 ? rank - 3 : 0, 'g') + "d";
  return makeFactorRule(*this, {dims, "xsf"}, {dims}, "dxf");
}

bool RotaryOp::isAdditiveIn(ArrayRef<unsigned> operands) {
  return operands == ArrayRef<unsigned>{0};
}

OpCost RotaryOp::getCost() { return elementwiseCost(*this, 3); }

LogicalResult RotaryOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                                      SmallVectorImpl<Value> &operandGradients) {
  Value gradient =
      createCast(builder, getLoc(), resultGradients[0], getElementTypeOrSelf(getInput()));
  operandGradients[0] = RotaryOp::create(builder, getLoc(), getInput().getType(), gradient,
                                         getTable(), !getInverse());
  return success();
}
