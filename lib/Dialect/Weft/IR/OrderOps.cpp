//===- OrderOps.cpp - changes of the order of positions -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Dialect/Weft/IR/ElementTypes.h"
#include "weft/Dialect/Weft/IR/Sharding.h"

using namespace mlir;
using namespace weft;

LogicalResult ZigzagAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, int64_t chunks,
                                 int64_t length) {
  if (chunks < 1 || chunks % 2 != 0 || length < 1) { // zigzag_c1
    return emitError() << "expected an even number of chunks, and positions in each, got " << chunks
                       << " x " << length;
  }
  return success();
}

/// The input's dimension is 'z', which no result has.
FactorRule ReorderOp::getFactorRule() {
  std::string stored = letters(cast<RankedTensorType>(getOutput().getType()).getRank());
  std::string input = stored;
  if (getDim() < input.size()) {
    input[getDim()] = 'z';
  }
  return makeFactorRule(*this, {input, ""}, {stored}, "z");
}

LogicalResult ReorderOp::verify() {
  auto input = cast<RankedTensorType>(getInput().getType());
  if (static_cast<int64_t>(getDim()) >= input.getRank() ||
      input.getDimSize(getDim()) != getOrder().getSize()) { // reorder_c1
    return emitOpError() << "expected a dimension " << getDim() << " of " << getOrder().getSize()
                         << " positions, got " << input;
  }
  auto output = cast<RankedTensorType>(getOutput().getType());
  bool isShard = bool(getOffset());
  if (output.getElementType() != input.getElementType() ||
      (!isShard && output.getShape() != input.getShape())) { // reorder_c2
    return emitOpError() << "expected an output of the type of its input " << input << ", got "
                         << output;
  }
  return success();
}

bool ReorderOp::isAdditiveIn(ArrayRef<unsigned>) { return true; }

OpCost ReorderOp::getCost() { return elementwiseCost(*this, 0); }

SmallVector<unsigned> ReorderOp::getPositionFactors() {
  return {getFactorRule().results[0][getDim()]};
}

/// An order has a fixed number of positions, so they cannot be padded.
bool ReorderOp::mayBePadded(unsigned factor) { return factor != getPositionFactors()[0]; }

void ReorderOp::setPosition(ValueRange offsets, ArrayRef<int64_t>) {
  getOffsetMutable().assign(offsets);
}

Position ReorderOp::getPosition() { return {OperandRange(getOffsetMutable()), {}}; }
