//===- AttentionOps.cpp - attention -------------------------------------===//
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

namespace {
/// batch b, position s, KV head g, query head in its group r, feature d. Queries and keys
/// share the position: cutting it needs another algorithm, so it must be replicated.
constexpr const char *kQuery = "bsgrd";
constexpr const char *kKey = "bsgd";
constexpr const char *kLse = "bgrs";
constexpr const char *kMustReplicate = "sd";
/// With dropout a weight's number counts the query heads of a group, whose offset nobody gives.
constexpr const char *kMustReplicateWithDropout = "srd";

/// `products` of positions by positions for each head, of which causality needs half, and a
/// window as much less as it hides; each product is a multiply-add for each feature.
template <typename OpTy> OpCost attentionCost(OpTy op, double products) {
  auto type = cast<RankedTensorType>(op.getQuery().getType());
  auto positions = static_cast<double>(type.getDimSize(1));
  double width = std::min(static_cast<double>(op.getWindow().value_or(positions)), positions);
  double keys = op.getBidirectional() ? positions : width * (1 - width / positions / 2);
  BatchPolynomial flops = elementCount(type.getShape(), products * 2 * keys);
  OpCost cost = elementwiseCost(op, 0);
  cost.flops = flops;
  return cost;
}
} // namespace

/// Constraints of attention and its derivative.
template <typename OpTy> static LogicalResult verifyAttention(OpTy op) {
  double rate = op.getDropout().convertToDouble();
  if (!(rate >= 0 && rate < 1)) { // attention_c2
    return op.emitOpError() << "the dropout rate must lie in [0, 1), got " << rate;
  }
  for (bool isGiven : {bool(op.getSeed()), bool(op.getStep()), bool(op.getLayer())}) {
    if (isGiven != (rate > 0)) {
      return op.emitOpError("seed, step and layer are given exactly when there is dropout");
    }
  }
  if (op.getWindow() && static_cast<int64_t>(*op.getWindow()) < 1) { // attention_c4
    return op.emitOpError() << "the window must be at least 1, got "
                            << static_cast<int64_t>(*op.getWindow());
  }
  if (op.getWindow() && op.getBidirectional()) { // attention_c6
    return op.emitOpError("a bidirectional attention has no window");
  }
  return verifyPosition(op, op.getOffsets(), op.getGlobalShape()); // attention_c3
}

/// attention_c5 and attention_grad_c1, as far as they are the same.
template <typename OpTy> static LogicalResult verifyElementTypes(OpTy op) {
  Type element = getElementTypeOrSelf(op.getQuery());
  return failure(failed(verifyElementType(op, "key", op.getKey(), element)) ||
                 failed(verifyElementType(op, "value", op.getValue(), element)) ||
                 failed(verifyElementType(op, "output", op.getOutput(), element)) ||
                 failed(verifyElementType(op, "lse", op.getLse(), wideTypeOf(element))));
}

LogicalResult AttentionOp::verify() {
  return failure(failed(verifyElementTypes(*this)) || failed(verifyAttention(*this)));
}

LogicalResult AttentionGradOp::verify() {
  Type element = getElementTypeOrSelf(getQuery()), wide = wideTypeOf(element);
  return failure(failed(verifyElementTypes(*this)) ||
                 failed(verifyElementType(*this, "gradient", getGradient(), element)) ||
                 failed(verifyElementType(*this, "query gradient", getQueryGradient(), wide)) ||
                 failed(verifyElementType(*this, "key gradient", getKeyGradient(), element)) ||
                 failed(verifyElementType(*this, "value gradient", getValueGradient(), element)) ||
                 failed(verifyAttention(*this)));
}

FactorRule AttentionOp::getFactorRule() {
  std::vector<std::string> operands(getNumOperands());
  operands[0] = kQuery;
  operands[1] = operands[2] = kKey;
  return makeFactorRule(*this, operands, {kQuery, kLse},
                        getDropout().isZero() ? kMustReplicate : kMustReplicateWithDropout);
}

OpCost AttentionOp::getCost() { return attentionCost(*this, 2); }

SmallVector<unsigned> AttentionOp::getPositionFactors() {
  return getDropout().isZero() ? SmallVector<unsigned>{} : SmallVector<unsigned>{0, 2};
}

void AttentionOp::setPosition(ValueRange offsets, ArrayRef<int64_t> globalSizes) {
  getOffsetsMutable().assign(offsets);
  setGlobalShape(globalSizes);
}

LogicalResult AttentionOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                                         SmallVectorImpl<Value> &operandGradients) {
  if (resultGradients[1]) {
    return emitOpError("has no derivative of its lse, but the loss depends on it");
  }
  auto queryType = cast<RankedTensorType>(getQuery().getType());
  Value outputGradient =
      createCast(builder, getLoc(), resultGradients[0], queryType.getElementType());
  auto gradient = AttentionGradOp::create(
      builder, getLoc(), queryType.clone(wideTypeOf(queryType.getElementType())),
      getKey().getType(), getValue().getType(), getQuery(), getKey(), getValue(), getOutput(),
      getLse(), outputGradient, getSeed(), getStep(), getLayer(), getOffsets(), getScale(),
      getDropout(), getWindowAttr(), getBidirectional(), getGlobalShapeAttr());
  operandGradients[0] = gradient.getQueryGradient();
  operandGradients[1] = gradient.getKeyGradient();
  operandGradients[2] = gradient.getValueGradient();
  return success();
}

FactorRule AttentionGradOp::getFactorRule() {
  std::vector<std::string> operands(getNumOperands());
  operands[0] = operands[3] = operands[5] = kQuery;
  operands[1] = operands[2] = kKey;
  operands[4] = kLse;
  return makeFactorRule(*this, operands, {kQuery, kKey, kKey},
                        getDropout().isZero() ? kMustReplicate : kMustReplicateWithDropout);
}

OpCost AttentionGradOp::getCost() { return attentionCost(*this, 5); }

SmallVector<unsigned> AttentionGradOp::getPositionFactors() {
  return getDropout().isZero() ? SmallVector<unsigned>{} : SmallVector<unsigned>{0, 2};
}

void AttentionGradOp::setPosition(ValueRange offsets, ArrayRef<int64_t> globalSizes) {
  getOffsetsMutable().assign(offsets);
  setGlobalShape(globalSizes);
}
