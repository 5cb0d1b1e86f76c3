//===- EmbeddingOps.cpp - embeddings, and the cross-entropy loss --------===//
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

static int64_t rankOf(Value value) { return cast<RankedTensorType>(value.getType()).getRank(); }

/// In embeddings and losses, a, b, … are the dimensions of tokens, and v that of rows.
static std::string tokenDims(Value tokens) { return letters(rankOf(tokens)); }

//===----------------------------------------------------------------------===//
// Embedding
//===----------------------------------------------------------------------===//

LogicalResult EmbeddingOp::verify() {
  Type table = getElementTypeOrSelf(getTable()), output = getElementTypeOrSelf(getOutput());
  if (output != table && output != wideTypeOf(table)) { // embedding_c2
    return emitOpError() << "expected an output of the table's element type, " << table
                         << ", or of its wide type, got " << output;
  }
  return success();
}

FactorRule EmbeddingOp::getFactorRule() {
  std::string tokens = tokenDims(getIds());
  return makeFactorRule(*this, {"vh", tokens, ""}, {tokens + "h"});
}

bool EmbeddingOp::isAdditiveIn(ArrayRef<unsigned> operands) {
  return operands == ArrayRef<unsigned>{0};
}

OpCost EmbeddingOp::getCost() {
  // A row is read for each token, not the whole table.
  auto output = cast<RankedTensorType>(getOutput().getType());
  double bytes = output.getElementTypeBitWidth() / 8.0;
  return {BatchPolynomial{}, elementCount(output.getShape(), 2 * bytes)};
}

SmallVector<unsigned> EmbeddingOp::getPositionFactors() { return {0}; }

void EmbeddingOp::setPosition(ValueRange offsets, ArrayRef<int64_t>) {
  getOffsetMutable().assign(offsets);
}

/// No id is a row of padding.
bool EmbeddingOp::isNothingBeyond(unsigned factor, ArrayRef<unsigned> zeros, unsigned) {
  return factor == getPositionFactors()[0] || isAdditiveInSome(*this, zeros);
}

Position EmbeddingOp::getPosition() { return {OperandRange(getOffsetMutable()), {}}; }

LogicalResult EmbeddingOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                                         SmallVectorImpl<Value> &operandGradients) {
  Type wide = wideTypeOf(getElementTypeOrSelf(resultGradients[0]));
  Type type = cast<RankedTensorType>(getTable().getType()).clone(wide);
  operandGradients[0] =
      EmbeddingGradOp::create(builder, getLoc(), type, getIds(), resultGradients[0], Value());
  return success();
}

LogicalResult EmbeddingGradOp::verify() {
  return verifyElementType(*this, "output", getOutput(), // embedding_grad_c2
                           wideTypeOf(getElementTypeOrSelf(getGradient())));
}

FactorRule EmbeddingGradOp::getFactorRule() {
  std::string tokens = tokenDims(getIds());
  return makeFactorRule(*this, {tokens, tokens + "h", ""}, {"vh"});
}

bool EmbeddingGradOp::isAdditiveIn(ArrayRef<unsigned> operands) {
  return operands == ArrayRef<unsigned>{1};
}

OpCost EmbeddingGradOp::getCost() { return elementwiseCost(*this, 1); }

SmallVector<unsigned> EmbeddingGradOp::getPositionFactors() {
  return {getFactorRule().results[0][0]};
}

void EmbeddingGradOp::setPosition(ValueRange offsets, ArrayRef<int64_t>) {
  getOffsetMutable().assign(offsets);
}

bool EmbeddingGradOp::isNothingBeyond(unsigned factor, ArrayRef<unsigned> zeros, unsigned) {
  return factor == getPositionFactors()[0] || isAdditiveInSome(*this, zeros);
}

Position EmbeddingGradOp::getPosition() { return {OperandRange(getOffsetMutable()), {}}; }

//===----------------------------------------------------------------------===//
// Cross-entropy
//===----------------------------------------------------------------------===//

/// cross_entropy_c3, cross_entropy_grad_c2
template <typename OpTy> static LogicalResult verifyColumns(OpTy op) {
  auto columns = op.getColumns();
  if (columns && (columns->size() != 1 || columns->front() < 1)) {
    return op.emitOpError("expected one number of columns, of at least 1");
  }
  return success();
}

LogicalResult CrossEntropyOp::verify() {
  Type wide = wideTypeOf(getElementTypeOrSelf(getLogits())); // cross_entropy_c2
  return failure(failed(verifyElementType(*this, "lse", getLse(), wide)) ||
                 failed(verifyElementType(*this, "picked", getPicked(), wide)) ||
                 failed(verifyColumns(*this)));
}

FactorRule CrossEntropyOp::getFactorRule() {
  std::string tokens = tokenDims(getTargets());
  return makeFactorRule(*this, {tokens + "v", tokens, ""}, {tokens, tokens}, "",
                        {ReductionKind::LogSumExp, ReductionKind::Sum});
}

OpCost CrossEntropyOp::getCost() { return elementwiseCost(*this, 4); }

SmallVector<unsigned> CrossEntropyOp::getPositionFactors() {
  return {getFactorRule().operands[0].back()};
}

void CrossEntropyOp::setPosition(ValueRange offsets, ArrayRef<int64_t>) {
  getOffsetMutable().assign(offsets);
}

SmallVector<unsigned> CrossEntropyOp::getSizedFactors() { return getPositionFactors(); }

void CrossEntropyOp::setUnpaddedSizes(ArrayRef<int64_t> sizes) { setColumns(sizes); }

ArrayRef<int64_t> CrossEntropyOp::getUnpaddedSizes() {
  return getColumns().value_or(ArrayRef<int64_t>());
}

/// Columns from `columns` on do not count. A token of padding has a loss like any other.
bool CrossEntropyOp::isNothingBeyond(unsigned factor, ArrayRef<unsigned>, unsigned) {
  return factor == getPositionFactors()[0];
}

Position CrossEntropyOp::getPosition() { return {OperandRange(getOffsetMutable()), {}}; }

LogicalResult CrossEntropyOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                                            SmallVectorImpl<Value> &operandGradients) {
  // A loss that reads only one of the two has a zero gradient for the other.
  auto orZero = [&](Value gradient) {
    return gradient ? gradient : createZeroLike(builder, getLoc(), getLse());
  };
  operandGradients[0] = CrossEntropyGradOp::create(
      builder, getLoc(), getLogits().getType(), getLogits(), getTargets(), getLse(),
      orZero(resultGradients[0]), orZero(resultGradients[1]), Value(), getColumnsAttr());
  return success();
}

LogicalResult CrossEntropyGradOp::verify() {
  Type element = getElementTypeOrSelf(getLogits()), wide = wideTypeOf(element);
  return failure( // cross_entropy_grad_c1
      failed(verifyElementType(*this, "output", getOutput(), element)) ||
      failed(verifyElementType(*this, "lse", getLse(), wide)) ||
      failed(verifyElementType(*this, "gradient of lse", getLseGradient(), wide)) ||
      failed(verifyElementType(*this, "gradient of picked", getPickedGradient(), wide)) ||
      failed(verifyColumns(*this)));
}

FactorRule CrossEntropyGradOp::getFactorRule() {
  std::string tokens = tokenDims(getTargets());
  std::string logits = tokens + "v";
  return makeFactorRule(*this, {logits, tokens, tokens, tokens, tokens, ""}, {logits});
}

OpCost CrossEntropyGradOp::getCost() { return elementwiseCost(*this, 3); }

SmallVector<unsigned> CrossEntropyGradOp::getPositionFactors() {
  return {getFactorRule().operands[0].back()};
}

void CrossEntropyGradOp::setPosition(ValueRange offsets, ArrayRef<int64_t>) {
  getOffsetMutable().assign(offsets);
}

SmallVector<unsigned> CrossEntropyGradOp::getSizedFactors() { return getPositionFactors(); }

void CrossEntropyGradOp::setUnpaddedSizes(ArrayRef<int64_t> sizes) { setColumns(sizes); }

ArrayRef<int64_t> CrossEntropyGradOp::getUnpaddedSizes() {
  return getColumns().value_or(ArrayRef<int64_t>());
}

/// The derivative has a term for each of the two incoming gradients.
bool CrossEntropyGradOp::isNothingBeyond(unsigned factor, ArrayRef<unsigned> zeros, unsigned) {
  return factor == getPositionFactors()[0] ||
         (llvm::is_contained(zeros, getLseGradientMutable().getOperandNumber()) &&
          llvm::is_contained(zeros, getPickedGradientMutable().getOperandNumber()));
}

Position CrossEntropyGradOp::getPosition() { return {OperandRange(getOffsetMutable()), {}}; }
