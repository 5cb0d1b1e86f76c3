//===- ExpertOps.cpp - routing of tokens to experts and back ------------===//
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

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

//===----------------------------------------------------------------------===//
// TopK
//===----------------------------------------------------------------------===//

LogicalResult TopKOp::verify() {
  Type element = getElementTypeOrSelf(getInput());
  if (failed(verifyElementType(*this, "output", getOutput(), element)) || // top_k_c1
      failed(verifyElementType(*this, "bias", getBias(), element))) {
    return failure();
  }
  int64_t experts = typeOf(getInput()).getShape().back();
  if (failed(verifyUnpaddedColumns(*this, getColumns(), experts))) { // top_k_c4
    return failure();
  }
  experts = getColumns() ? getColumns()->front() : experts;
  int64_t groups = getGroups(), kept = getKeptGroups(), count = getCount();
  if (groups < 1 || experts % groups != 0 || kept < 1 || kept > groups) { // top_k_c2
    return emitOpError() << "expected groups that divide a row of " << experts
                         << ", and 1 to all groups kept, got " << groups << " and " << kept;
  }
  if (int64_t most = experts / groups * kept; count < 1 || count > most) { // top_k_c3
    return emitOpError() << "expected a count of 1 to " << most << ", got " << count;
  }
  return success();
}

FactorRule TopKOp::getFactorRule() {
  int64_t rank = typeOf(getInput()).getRank();
  if (rank == 0) { // top_k_c1
    emitOpError("expected a tensor with a last dimension, got a scalar");
    return {};
  }
  std::string dims = letters(rank - 1) + "z";
  std::vector<std::string> operands = {dims};
  if (getBias()) {
    operands.push_back("z");
  }
  return makeFactorRule(*this, operands, {dims}, "z");
}

OpCost TopKOp::getCost() { return elementwiseCost(*this, static_cast<double>(getCount())); }

SmallVector<unsigned> TopKOp::getSizedFactors() { return {getFactorRule().operands[0].back()}; }

void TopKOp::setUnpaddedSizes(ArrayRef<int64_t> sizes) { setColumns(sizes); }

ArrayRef<int64_t> TopKOp::getUnpaddedSizes() { return getColumns().value_or(ArrayRef<int64_t>()); }

bool TopKOp::mayBePadded(unsigned) { return true; }

/// From a row of padding, the op picks as many elements as from any other.
bool TopKOp::isNothingBeyond(unsigned factor, ArrayRef<unsigned>, unsigned) {
  return factor == getSizedFactors()[0];
}

LogicalResult TopKOp::buildGradient(OpBuilder &, ValueRange, SmallVectorImpl<Value> &) {
  return success();
}

//===----------------------------------------------------------------------===//
// CumulativeSum
//===----------------------------------------------------------------------===//

LogicalResult CumulativeSumOp::verify() {
  return verifyElementType(*this, "output", getOutput(), // cumulative_sum_c1
                           getElementTypeOrSelf(getInput()));
}

FactorRule CumulativeSumOp::getFactorRule() {
  int64_t rank = typeOf(getInput()).getRank(), dimension = getDimension();
  if (dimension < 0 || dimension >= rank) { // cumulative_sum_c2
    emitOpError() << "expected a dimension from 0 to " << rank - 1 << ", got " << dimension;
    return {};
  }
  std::string dims = letters(rank);
  return makeFactorRule(*this, {dims}, {dims}, StringRef(dims).substr(dimension, 1));
}

bool CumulativeSumOp::isAdditiveIn(ArrayRef<unsigned>) { return true; }

/// Unless the sum is in reverse, the padding comes after all summands.
bool CumulativeSumOp::mayBePadded(unsigned factor) {
  return !getReverse() || factor != getFactorRule().operands[0][getDimension()];
}

bool CumulativeSumOp::isNothingBeyond(unsigned factor, ArrayRef<unsigned> zeros, unsigned) {
  return factor != getFactorRule().operands[0][getDimension()] && isAdditiveInSome(*this, zeros);
}

OpCost CumulativeSumOp::getCost() { return elementwiseCost(*this, 1); }

LogicalResult CumulativeSumOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                                             SmallVectorImpl<Value> &operandGradients) {
  operandGradients[0] =
      CumulativeSumOp::create(builder, getLoc(), getInput().getType(), resultGradients[0],
                              getDimension(), /*reverse=*/!getReverse());
  return success();
}

//===----------------------------------------------------------------------===//
// Slots
//===----------------------------------------------------------------------===//

namespace {
// Dimensions: group g, token t, expert e, slot c, hidden h. A slot's number depends on all tokens
// of its group before it, so neither is cut.
constexpr const char *kTokens = "gth", *kSlots = "egch", *kRouting = "gte", *kWhole = "tc";

/// Checks the numbers of dimensions of tokens, slots and routing, which the factors depend on.
LogicalResult verifyRanks(Operation *op, Value tokens, Value slots, Value mask) {
  if (typeOf(tokens).getRank() == 3 && typeOf(slots).getRank() == 4 &&
      typeOf(mask).getRank() == 3) {
    return success();
  }
  return op->emitOpError() << "expected tokens of [group, token, hidden], slots of [expert, group, "
                              "slot, hidden] and a mask of [group, token, expert], got "
                           << tokens.getType() << ", " << slots.getType() << " and "
                           << mask.getType();
}

/// Tokens of padding come after all others in the slots. The number of slots is fixed.
bool mayPadSlots(ShardableOpInterface op, unsigned factor) {
  FactorRule rule = op.getFactorRule();
  unsigned token = rule.operands.back()[1]; // of the mask
  return factor == token || rule.factors[factor].kind != FactorKind::MustReplicate;
}

/// Tokens have slots only where the mask, the last operand, is not zero.
bool isNoSlotBeyond(Operation *op, ArrayRef<unsigned> zeros) {
  return llvm::is_contained(zeros, op->getNumOperands() - 1) || isAdditiveInSome(op, zeros);
}

/// Operations: a multiply-add for each element of each slot.
OpCost slotCost(Operation *op, Value slots) {
  OpCost cost = elementwiseCost(op, 0);
  cost.flops = elementCount(typeOf(slots).getShape(), 2);
  return cost;
}

/// The derivatives of w[t, e] * x[t, h] * y[e, c, h] by each of the three, with their types. Each
/// is null if one of the other two is null.
struct SlotDerivatives {
  OpBuilder &builder;
  Location loc;
  Value mask;

  /// Builds the derivative by y; `slots` has its type.
  Value bySlots(Value tokens, Value weights, Value slots) {
    Type element = getElementTypeOrSelf(slots);
    return DispatchOp::create(builder, loc, slots.getType(),
                              createCast(builder, loc, tokens, element),
                              createCast(builder, loc, weights, wideTypeOf(element)), mask);
  }
  /// Builds the derivative by x; `tokens` has its type.
  Value byTokens(Value slots, Value weights, Value tokens) {
    Type element = getElementTypeOrSelf(tokens);
    RankedTensorType type = typeOf(tokens).clone(wideTypeOf(element));
    return CombineOp::create(builder, loc, type, createCast(builder, loc, slots, element),
                             createCast(builder, loc, weights, wideTypeOf(element)), mask);
  }
  Value byWeights(Value tokens, Value slots, Type element) {
    return SlotProductsOp::create(builder, loc, mask.getType(),
                                  createCast(builder, loc, tokens, element),
                                  createCast(builder, loc, slots, element), mask);
  }
};
} // namespace

LogicalResult DispatchOp::verify() {
  Type element = getElementTypeOrSelf(getInput()), wide = wideTypeOf(element); // dispatch_c2
  return failure(failed(verifyElementType(*this, "output", getOutput(), element)) ||
                 failed(verifyElementType(*this, "weights", getWeights(), wide)) ||
                 failed(verifyElementType(*this, "mask", getMask(), wide)));
}

FactorRule DispatchOp::getFactorRule() {
  if (failed(verifyRanks(*this, getInput(), getOutput(), getMask()))) { // dispatch_c1
    return {};
  }
  return makeFactorRule(*this, {kTokens, kRouting, kRouting}, {kSlots}, kWhole);
}

bool DispatchOp::isAdditiveIn(ArrayRef<unsigned> operands) {
  return operands == ArrayRef<unsigned>{0} || operands == ArrayRef<unsigned>{1};
}

bool DispatchOp::mayBePadded(unsigned factor) { return mayPadSlots(*this, factor); }

bool DispatchOp::isNothingBeyond(unsigned, ArrayRef<unsigned> zeros, unsigned) {
  return isNoSlotBeyond(*this, zeros);
}

OpCost DispatchOp::getCost() { return slotCost(*this, getOutput()); }

LogicalResult DispatchOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                                        SmallVectorImpl<Value> &operandGradients) {
  SlotDerivatives derivatives{builder, getLoc(), getMask()};
  Value gradient = resultGradients[0];
  operandGradients[0] = derivatives.byTokens(gradient, getWeights(), getInput());
  operandGradients[1] =
      derivatives.byWeights(getInput(), gradient, getElementTypeOrSelf(getInput()));
  return success();
}

LogicalResult CombineOp::verify() {
  Type wide = wideTypeOf(getElementTypeOrSelf(getInput())); // combine_c2
  return failure(failed(verifyElementType(*this, "output", getOutput(), wide)) ||
                 failed(verifyElementType(*this, "weights", getWeights(), wide)) ||
                 failed(verifyElementType(*this, "mask", getMask(), wide)));
}

FactorRule CombineOp::getFactorRule() {
  if (failed(verifyRanks(*this, getOutput(), getInput(), getMask()))) { // combine_c1
    return {};
  }
  return makeFactorRule(*this, {kSlots, kRouting, kRouting}, {kTokens}, kWhole);
}

bool CombineOp::isAdditiveIn(ArrayRef<unsigned> operands) {
  return operands == ArrayRef<unsigned>{0} || operands == ArrayRef<unsigned>{1};
}

bool CombineOp::mayBePadded(unsigned factor) { return mayPadSlots(*this, factor); }

bool CombineOp::isNothingBeyond(unsigned, ArrayRef<unsigned> zeros, unsigned) {
  return isNoSlotBeyond(*this, zeros);
}

OpCost CombineOp::getCost() { return slotCost(*this, getInput()); }

LogicalResult CombineOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                                       SmallVectorImpl<Value> &operandGradients) {
  SlotDerivatives derivatives{builder, getLoc(), getMask()};
  Value gradient = resultGradients[0];
  operandGradients[0] = derivatives.bySlots(gradient, getWeights(), getInput());
  operandGradients[1] =
      derivatives.byWeights(gradient, getInput(), getElementTypeOrSelf(getInput()));
  return success();
}

LogicalResult SlotProductsOp::verify() {
  Type element = getElementTypeOrSelf(getTokens()), wide = wideTypeOf(element);
  return failure( // slot_products_c2
      failed(verifyElementType(*this, "slots", getSlots(), element)) ||
      failed(verifyElementType(*this, "mask", getMask(), wide)) ||
      failed(verifyElementType(*this, "output", getOutput(), wide)));
}

FactorRule SlotProductsOp::getFactorRule() {
  if (failed(verifyRanks(*this, getTokens(), getSlots(), getMask()))) { // slot_products_c1
    return {};
  }
  return makeFactorRule(*this, {kTokens, kSlots, kRouting}, {kRouting}, kWhole);
}

bool SlotProductsOp::isAdditiveIn(ArrayRef<unsigned> operands) {
  return operands == ArrayRef<unsigned>{0} || operands == ArrayRef<unsigned>{1};
}

bool SlotProductsOp::mayBePadded(unsigned factor) { return mayPadSlots(*this, factor); }

bool SlotProductsOp::isNothingBeyond(unsigned, ArrayRef<unsigned> zeros, unsigned) {
  return isNoSlotBeyond(*this, zeros);
}

OpCost SlotProductsOp::getCost() { return slotCost(*this, getSlots()); }

LogicalResult SlotProductsOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                                            SmallVectorImpl<Value> &operandGradients) {
  SlotDerivatives derivatives{builder, getLoc(), getMask()};
  Value gradient = resultGradients[0];
  operandGradients[0] = derivatives.byTokens(getSlots(), gradient, getTokens());
  operandGradients[1] = derivatives.bySlots(getTokens(), gradient, getSlots());
  return success();
}
