//===- RandomOps.cpp - ops that count or draw random numbers ------------===//
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

static std::string dimsOf(Value value) {
  return letters(cast<RankedTensorType>(value.getType()).getRank());
}

static SmallVector<unsigned> allDims(Value value) {
  return llvm::to_vector(llvm::seq<unsigned>(0, cast<RankedTensorType>(value.getType()).getRank()));
}

//===----------------------------------------------------------------------===//
// Iota
//===----------------------------------------------------------------------===//

FactorRule IotaOp::getFactorRule() { return makeFactorRule(*this, {""}, {"s"}); }

OpCost IotaOp::getCost() { return elementwiseCost(*this, 0); }

SmallVector<unsigned> IotaOp::getPositionFactors() { return {0}; }

void IotaOp::setPosition(ValueRange offsets, ArrayRef<int64_t>) {
  getOffsetMutable().assign(offsets);
}

Position IotaOp::getPosition() { return {OperandRange(getOffsetMutable()), {}}; }

//===----------------------------------------------------------------------===//
// Fill
//===----------------------------------------------------------------------===//

void FillOp::build(OpBuilder &builder, OperationState &state, RankedTensorType type, double value) {
  build(builder, state, type, Distribution::Constant, APFloat(value), /*seed=*/Value(),
        /*stream=*/Value(), /*deviation=*/Value(), /*offsets=*/ValueRange(),
        /*global_shape=*/DenseI64ArrayAttr());
}

void FillOp::build(OpBuilder &builder, OperationState &state, RankedTensorType type,
                   double deviation, Value seed, Value stream) {
  build(builder, state, type, Distribution::Normal, APFloat(deviation), seed, stream,
        /*deviation=*/Value(), /*offsets=*/ValueRange(), /*global_shape=*/DenseI64ArrayAttr());
}

LogicalResult FillOp::verify() {
  bool isNormal = getDistribution() == Distribution::Normal;
  if (bool(getSeed()) != isNormal || bool(getStream()) != isNormal) { // fill_c1
    return emitOpError(isNormal ? "a normal distribution needs a seed and a stream"
                                : "a constant takes no seed and no stream");
  }
  if (isNormal && !(getValue().convertToDouble() > 0)) { // fill_c2
    return emitOpError() << "expected a positive standard deviation, got "
                         << getValue().convertToDouble();
  }
  if (getDeviation() && !(isNormal && getValue().isExactlyValue(1.0))) { // fill_c4
    return emitOpError("a deviation is given, expected a normal distribution of value 1");
  }
  return verifyPosition(*this, getOffsets(), getGlobalShape()); // fill_c3
}

void FillOp::turnNumbersIntoOperands() {
  if (getDistribution() != Distribution::Normal || getDeviation()) {
    return;
  }
  OpBuilder builder(*this);
  auto bits = static_cast<int64_t>(getValue().bitcastToAPInt().getZExtValue());
  getDeviationMutable().assign(arith::ConstantIndexOp::create(builder, getLoc(), bits));
  setValue(APFloat(1.0));
}

FactorRule FillOp::getFactorRule() {
  return makeFactorRule(*this, std::vector<std::string>(getNumOperands()), {dimsOf(getOutput())});
}

OpCost FillOp::getCost() {
  return elementwiseCost(*this, getDistribution() == Distribution::Normal ? 40 : 0);
}

SmallVector<unsigned> FillOp::getPositionFactors() {
  return getDistribution() == Distribution::Normal ? allDims(getOutput()) : SmallVector<unsigned>{};
}

void FillOp::setPosition(ValueRange offsets, ArrayRef<int64_t> globalSizes) {
  getOffsetsMutable().assign(offsets);
  setGlobalShape(globalSizes);
}

SmallVector<unsigned> FillOp::getSizedFactors() { return getPositionFactors(); }

void FillOp::setUnpaddedSizes(ArrayRef<int64_t> sizes) { setGlobalShape(sizes); }

ArrayRef<int64_t> FillOp::getUnpaddedSizes() {
  return getGlobalShape().value_or(ArrayRef<int64_t>());
}

bool FillOp::isNothingBeyond(unsigned, ArrayRef<unsigned>, unsigned) {
  return getDistribution() == Distribution::Constant && getValue().isZero();
}

Position FillOp::getPosition() { return {getOffsets(), getUnpaddedSizes()}; }

//===----------------------------------------------------------------------===//
// Dropout
//===----------------------------------------------------------------------===//

LogicalResult DropoutOp::verify() {
  double rate = getRate().convertToDouble();
  if (!(rate > 0 && rate < 1)) { // dropout_c1
    return emitOpError() << "the rate must lie between 0 and 1, got " << rate;
  }
  if (failed(verifyElementType(*this, "output", getOutput(),
                               getElementTypeOrSelf(getInput())))) { // dropout_c3
    return failure();
  }
  if (failed(verifyPosition(*this, getOffsets(), getGlobalShape()))) { // dropout_c2
    return failure();
  }
  if (bool(getOrder()) != bool(getOrderedDim())) { // dropout_c4
    return emitOpError("an order and the dimension that is stored in it are given together");
  }
  if (getOrder()) {
    ArrayRef<int64_t> stored = cast<RankedTensorType>(getInput().getType()).getShape();
    ArrayRef<int64_t> unpadded = getGlobalShape().value_or(stored);
    uint64_t dim = *getOrderedDim();
    if (dim >= stored.size() || !isOrderOf(*getOrder(), stored[dim], getOffsets().empty(),
                                           unpadded[dim])) { // dropout_c4
      return emitOpError() << "has no dimension " << *getOrderedDim() << " of "
                           << getOrder()->getSize() << " positions, as its order has";
    }
  }
  return success();
}

void DropoutOp::setOrder(unsigned factor, ZigzagAttr order) {
  setOrderAttr(order);
  setOrderedDim(factor);
}

FactorRule DropoutOp::getFactorRule() {
  std::vector<std::string> operands(getNumOperands());
  operands[0] = dimsOf(getInput());
  return makeFactorRule(*this, operands, {operands[0]});
}

bool DropoutOp::isAdditiveIn(ArrayRef<unsigned> operands) {
  return operands == ArrayRef<unsigned>{0};
}

OpCost DropoutOp::getCost() { return elementwiseCost(*this, 2); }

SmallVector<unsigned> DropoutOp::getPositionFactors() { return allDims(getInput()); }

void DropoutOp::setPosition(ValueRange offsets, ArrayRef<int64_t> globalSizes) {
  getOffsetsMutable().assign(offsets);
  setGlobalShape(globalSizes);
}

SmallVector<unsigned> DropoutOp::getSizedFactors() { return getPositionFactors(); }

void DropoutOp::setUnpaddedSizes(ArrayRef<int64_t> sizes) { setGlobalShape(sizes); }

ArrayRef<int64_t> DropoutOp::getUnpaddedSizes() {
  return getGlobalShape().value_or(ArrayRef<int64_t>());
}

Position DropoutOp::getPosition() { return {getOffsets(), getUnpaddedSizes()}; }

LogicalResult DropoutOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                                       SmallVectorImpl<Value> &operandGradients) {
  Value gradient =
      createCast(builder, getLoc(), resultGradients[0], getElementTypeOrSelf(getInput()));
  operandGradients[0] =
      DropoutOp::create(builder, getLoc(), getInput().getType(), gradient, getSeed(), getStep(),
                        getLayer(), getOffsets(), getRate(), getSite(), getGlobalShapeAttr(),
                        getOrderAttr(), getOrderedDimAttr());
  return success();
}
