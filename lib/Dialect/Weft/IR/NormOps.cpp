//===- NormOps.cpp - layer norm and RMS norm ----------------------------===//
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

/// Dimensions of the input, the last of which is 'z'.
static std::string rowDims(Value input) {
  int64_t rank = cast<RankedTensorType>(input.getType()).getRank();
  return letters(rank > 0 ? rank - 1 : 0) + "z";
}

LogicalResult NormOp::verify() {
  if (getKind() == NormKind::RMS && getBias()) { // norm_c2
    return emitOpError("an rms norm has no bias");
  }
  if (!(getEpsilon().convertToDouble() > 0)) { // norm_c3
    return emitOpError() << "epsilon must be positive, got " << getEpsilon().convertToDouble();
  }
  Type element = getElementTypeOrSelf(getInput()), wide = wideTypeOf(element); // norm_c4
  return failure(failed(verifyElementType(*this, "output", getOutput(), element)) ||
                 failed(verifyElementType(*this, "scale", getScale(), wide)) ||
                 failed(verifyElementType(*this, "bias", getBias(), wide)));
}

FactorRule NormOp::getFactorRule() {
  std::string row = rowDims(getInput());
  return makeFactorRule(*this, {row, "z", "z"}, {row}, "z");
}

OpCost NormOp::getCost() { return elementwiseCost(*this, 7); }

LogicalResult NormOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                                    SmallVectorImpl<Value> &operandGradients) {
  auto gradient = NormGradOp::create(
      builder, getLoc(), getInput().getType(), getScale().getType(),
      getBias() ? getBias().getType() : Type(), getKind(), getInput(), getScale(),
      createCast(builder, getLoc(), resultGradients[0], getElementTypeOrSelf(getOutput())),
      getEpsilon());
  operandGradients[0] = gradient.getInputGradient();
  operandGradients[1] = gradient.getScaleGradient();
  if (getBias()) {
    operandGradients[2] = gradient.getBiasGradient();
  }
  return success();
}

LogicalResult NormGradOp::verify() {
  Type element = getElementTypeOrSelf(getInput()), wide = wideTypeOf(element); // norm_grad_c1
  return failure(failed(verifyElementType(*this, "gradient", getGradient(), element)) ||
                 failed(verifyElementType(*this, "input gradient", getInputGradient(), element)) ||
                 failed(verifyElementType(*this, "scale", getScale(), wide)) ||
                 failed(verifyElementType(*this, "scale gradient", getScaleGradient(), wide)) ||
                 failed(verifyElementType(*this, "bias gradient", getBiasGradient(), wide)));
}

FactorRule NormGradOp::getFactorRule() {
  std::string row = rowDims(getInput());
  return makeFactorRule(*this, {row, "z", row}, {row, "z", "z"}, "z");
}

bool NormGradOp::isAdditiveIn(ArrayRef<unsigned> operands) {
  return operands == ArrayRef<unsigned>{2};
}

OpCost NormGradOp::getCost() { return elementwiseCost(*this, 14); }
