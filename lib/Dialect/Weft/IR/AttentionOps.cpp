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
/// batch b, position s, KV head g, query head in its group r, feature d; keys and values have the
/// position t, values and outputs the feature f.
constexpr const char *kQuery = "bsgrd";
constexpr const char *kKey = "btgd";
constexpr const char *kValue = "btgf";
constexpr const char *kOutput = "bsgrf";
constexpr const char *kLse = "bgrs";
constexpr const char *kStarts = "bs";

/// Numbers of the factors, which the query and then the key bring in.
enum AttentionFactor : unsigned { kBatch, kQueries, kHeads, kGroup, kFeatures, kKeys };

FactorRule attentionRule(Operation *op, ArrayRef<std::string> operands,
                         ArrayRef<std::string> results) {
  FactorRule rule = makeFactorRule(op, operands, results, /*mustReplicate=*/"df");
  rule.factors[kKeys].kind = FactorKind::Permutation;
  rule.factors[kKeys].partner = kQueries;
  return rule;
}

/// The dimensions of operands; empty for operands that are not tensors.
template <typename OpTy> std::vector<std::string> attentionOperands(OpTy op) {
  std::vector<std::string> operands(op.getNumOperands());
  operands[0] = kQuery;
  operands[1] = kKey;
  operands[2] = kValue;
  for (OpOperand &starts : MutableOperandRange(op.getStartsMutable())) {
    operands[starts.getOperandNumber()] = kStarts;
  }
  return operands;
}

/// With dropout, the number of a weight depends on all of these.
template <typename OpTy> SmallVector<unsigned> attentionPositions(OpTy op) {
  if (!op.getDropout().isZero()) {
    return {kBatch, kHeads, kGroup, kQueries, kKeys};
  }
  return op.getBidirectional() ? SmallVector<unsigned>{} : SmallVector<unsigned>{kQueries, kKeys};
}

/// Number of queries, or keys, of the whole.
template <typename OpTy>
int64_t wholeLength(OpTy op, TypedValue<RankedTensorType> shard, AttentionFactor factor) {
  SmallVector<unsigned> positions = attentionPositions(op);
  auto *place = llvm::find(positions, factor);
  return op.getGlobalShape() && place != positions.end()
             ? (*op.getGlobalShape())[place - positions.begin()]
             : shard.getType().getDimSize(1);
}

/// Numbers of matmuls over all pairs of a query and a key of a head. Those of `ofQueries` take a
/// multiply-add for each feature of a query, those of `ofValues` for each feature of a value.
struct AttentionMatmuls {
  double ofQueries, ofValues;
};

/// Returns the cost of attention. Causality halves each matmul, and a window cuts it to the keys in
/// it. The cost of a shard is the average over all shards.
template <typename OpTy>
OpCost attentionCost(OpTy op, AttentionMatmuls done, AttentionMatmuls asked) {
  auto whole = static_cast<double>(wholeLength(op, op.getKey(), kKeys));
  double width = std::min(static_cast<double>(op.getWindow().value_or(whole)), whole);
  double seen = op.getBidirectional() ? 1 : width / whole * (1 - width / whole / 2);
  double keys = seen * static_cast<double>(op.getKey().getType().getDimSize(1));
  OpCost cost = elementwiseCost(op, 0);
  auto flopsOf = [&](AttentionMatmuls matmuls) {
    BatchPolynomial flops =
        elementCount(op.getQuery().getType().getShape(), matmuls.ofQueries * 2 * keys);
    flops += elementCount(op.getOutput().getType().getShape(), matmuls.ofValues * 2 * keys);
    return flops;
  };
  cost.flops = flopsOf(done);
  cost.modelFlops = flopsOf(asked);
  if (op.getDropout().isZero()) { // No library computes attention with dropout.
    cost.rateFactors = {kKeys, kFeatures};
    if (!op.getBidirectional()) {
      cost.rateFactors->queries = kQueries;
    }
  }
  return cost;
}

/// Of the sizes without padding, only those that number weights matter.
template <typename OpTy> void setUnpadded(OpTy op, ArrayRef<int64_t> sizes) {
  if (!op.getDropout().isZero()) {
    op.setGlobalShape(sizes);
  }
}

/// Queries before the padding see no keys in it, because they see no later keys.
template <typename OpTy> bool mayPadAttention(OpTy op, unsigned factor) {
  return factor != kFeatures && (factor != kKeys || !op.getBidirectional());
}

/// Turns `op`, a copy of an attention over a group's shards, into one turn.
template <typename OpTy> OpTy asTurn(OpTy op, ValueRange operands, Value turn) {
  int64_t turns = op.getMesh()->getSize(op.getAxesAttr());
  int64_t keys = cast<RankedTensorType>(operands[1].getType()).getDimSize(1);
  op->setOperands(operands);
  if (!op.getOffsets().empty()) {
    op.getTurnMutable().assign(turn);
    if (op.getGlobalShape()->back() != turns * keys) {
      op.setTurns(turns);
    }
  }
  op.removeAxesAttr();
  op.removeMeshAttr();
  return op;
}
} // namespace

/// attention_c8
template <typename OpTy> static LogicalResult verifyTurns(OpTy op) {
  if (op.getTurn() && op.getOffsets().empty()) {
    return op.emitOpError("a turn needs offsets");
  }
  if (op.getTurns() && !op.getTurn()) {
    return op.emitOpError("has a number of turns, but no turn");
  }
  if (!op.getAxes()) {
    return success();
  }
  if (op.getTurn()) {
    return op.emitOpError("is over all shards of a group, so it has no turn");
  }
  llvm::SmallDenseSet<Attribute> seen;
  for (Attribute axis : op.getAxesAttr()) {
    if (op.getMesh()->getIndex(cast<StringAttr>(axis)) < 0 || !seen.insert(axis).second) {
      return op.emitOpError() << "is over " << *op.getAxes() << ", expected distinct axes of "
                              << *op.getMesh();
    }
  }
  return success();
}

/// Constraints of attention and its derivative.
template <typename OpTy> static LogicalResult verifyAttention(OpTy op) {
  double rate = op.getDropout().convertToDouble();
  if (!(rate >= 0 && rate < 1)) { // attention_c2
    return op.emitOpError() << "the dropout rate must lie in [0, 1), got " << rate;
  }
  for (bool isGiven : {bool(op.getSeed()), bool(op.getStep()), bool(op.getLayer())}) {
    if (isGiven != (rate > 0)) {
      return op.emitOpError("expected seed, step and layer if and only if there is dropout");
    }
  }
  if (op.getWindow() && static_cast<int64_t>(*op.getWindow()) < 1) { // attention_c4
    return op.emitOpError() << "the window must be at least 1, got "
                            << static_cast<int64_t>(*op.getWindow());
  }
  if (op.getBidirectional() && (op.getWindow() || op.getStarts())) { // attention_c6
    return op.emitOpError() << "a bidirectional attention has no "
                            << (op.getWindow() ? "window" : "starts");
  }
  if (failed(verifyPosition(op, op.getOffsets(), op.getGlobalShape()))) { // attention_c3
    return failure();
  }
  int64_t queries = wholeLength(op, op.getQuery(), kQueries);
  int64_t keys = wholeLength(op, op.getKey(), kKeys);
  if (!op.getBidirectional() && queries != keys) { // attention_c7
    return op.emitOpError() << "has " << queries << " queries and " << keys
                            << " keys, expected equal numbers unless it is bidirectional";
  }
  if (op.getOrder() &&
      !isOrderOf(*op.getOrder(), op.getKey().getType().getDimSize(1), // attention_c9
                 op.getOffsets().empty(), keys)) {
    return op.emitOpError() << "has " << keys << " positions, but an order of "
                            << op.getOrder()->getSize();
  }
  return verifyTurns(op);
}

/// attention_c5 and attention_grad_c1, as far as they are the same.
template <typename OpTy> static LogicalResult verifyElementTypes(OpTy op) {
  Type element = getElementTypeOrSelf(op.getQuery());
  return failure(failed(verifyElementType(op, "key", op.getKey(), element)) ||
                 failed(verifyElementType(op, "value", op.getValue(), element)) ||
                 failed(verifyElementType(op, "lse", op.getLse(), wideTypeOf(element))));
}

LogicalResult AttentionOp::verify() {
  Type element = getElementTypeOrSelf(getQuery()), wide = wideTypeOf(element);
  bool isWide = getElementTypeOrSelf(getOutput()) == wide;
  return failure(failed(verifyElementTypes(*this)) ||
                 failed(verifyElementType(*this, "output", getOutput(), isWide ? wide : element)) ||
                 failed(verifyAttention(*this)));
}

LogicalResult AttentionGradOp::verify() {
  Type element = getElementTypeOrSelf(getQuery());
  bool isNarrow = getElementTypeOrSelf(getQueryGradient()) == element;
  Type result = isNarrow ? element : wideTypeOf(element);
  return failure(failed(verifyElementTypes(*this)) ||
                 failed(verifyElementType(*this, "output", getOutput(), element)) ||
                 failed(verifyElementType(*this, "gradient", getGradient(), element)) ||
                 failed(verifyElementType(*this, "query gradient", getQueryGradient(), result)) ||
                 failed(verifyElementType(*this, "key gradient", getKeyGradient(), result)) ||
                 failed(verifyElementType(*this, "value gradient", getValueGradient(), result)) ||
                 failed(verifyAttention(*this)));
}

FactorRule AttentionOp::getFactorRule() {
  return attentionRule(*this, attentionOperands(*this), {kOutput, kLse});
}

OpCost AttentionOp::getCost() { return attentionCost(*this, {1, 1}, {1, 1}); }

SmallVector<unsigned> AttentionOp::getPositionFactors() { return attentionPositions(*this); }

void AttentionOp::setPosition(ValueRange offsets, ArrayRef<int64_t> globalSizes) {
  getOffsetsMutable().assign(offsets);
  setGlobalShape(globalSizes);
}

SmallVector<unsigned> AttentionOp::getSizedFactors() { return getPositionFactors(); }

void AttentionOp::setUnpaddedSizes(ArrayRef<int64_t> sizes) { setUnpadded(*this, sizes); }

ArrayRef<int64_t> AttentionOp::getUnpaddedSizes() {
  return getGlobalShape().value_or(ArrayRef<int64_t>());
}

bool AttentionOp::mayBePadded(unsigned factor) { return mayPadAttention(*this, factor); }

/// The output is a mean of values of its sequence and head.
bool AttentionOp::isNothingBeyond(unsigned factor, ArrayRef<unsigned> zeros, unsigned result) {
  bool isOfValue = factor == kBatch || factor == kHeads;
  return result == 0 && isOfValue &&
         llvm::is_contained(zeros, getValueMutable().getOperandNumber());
}

Position AttentionOp::getPosition() { return {getOffsets(), getUnpaddedSizes()}; }

void AttentionOp::setOrder(unsigned, ZigzagAttr order) { setOrderAttr(order); }

/// With a window all queries but the first see the same number of keys.
bool AttentionOp::growsWithPosition() { return !getBidirectional() && !getWindow(); }

ArrayAttr AttentionOp::getPermutedAxes() { return getAxesAttr(); }

MeshAttr AttentionOp::getPermutedMesh() { return getMeshAttr(); }

void AttentionOp::setPermutation(MeshAttr mesh, ArrayAttr axes) {
  setMeshAttr(mesh);
  setAxesAttr(axes);
}

/// The output stays wide until all turns are joined.
Operation *AttentionOp::createTurn(OpBuilder &builder, ValueRange operands, Value turn) {
  auto op = asTurn(cast<AttentionOp>(builder.clone(*getOperation())), operands, turn);
  auto type = op.getOutput().getType();
  op.getOutput().setType(type.clone(wideTypeOf(type.getElementType())));
  return op;
}

/// Weights are shares of the sum of exponentials, whose logarithm is the lse: of outputs o and o'
/// with lse l and l', the joint lse is log(exp l + exp l'), the joint output o exp(l - lse) +
/// o' exp(l' - lse).
SmallVector<Value> AttentionOp::joinTurns(OpBuilder &builder, ValueRange some, ValueRange others) {
  Type lseType = some[1].getType();
  auto shares =
      createMap(builder, getLoc(), {lseType, lseType, lseType}, {some[1], others[1]},
                [](OpBuilder &inner, Location at, ValueRange in) {
                  Value greatest = arith::MaximumFOp::create(inner, at, in[0], in[1]);
                  auto power = [&](Value value) -> Value {
                    Value distance = arith::SubFOp::create(inner, at, value, greatest);
                    return math::ExpOp::create(inner, at, distance);
                  };
                  Value first = power(in[0]), second = power(in[1]);
                  Value sum = arith::AddFOp::create(inner, at, first, second);
                  Value logarithm = math::LogOp::create(inner, at, sum);
                  return SmallVector<Value>{arith::AddFOp::create(inner, at, greatest, logarithm),
                                            arith::DivFOp::create(inner, at, first, sum),
                                            arith::DivFOp::create(inner, at, second, sum)};
                });
  // Positions lie before heads in the output.
  auto rowType = cast<RankedTensorType>(some[0].getType());
  rowType = rowType.clone(rowType.getShape().drop_back());
  auto rows = llvm::map_to_vector(shares.getResults().drop_front(), [&](Value share) -> Value {
    return ContractOp::create(builder, getLoc(), rowType, "bgrs->bsgr", share);
  });
  AffineMap whole = builder.getMultiDimIdentityMap(5);
  AffineMap row = whole.getMajorSubMap(4);
  auto output =
      MapOp::create(builder, getLoc(), some[0].getType(), {some[0], others[0], rows[0], rows[1]},
                    {whole, whole, row, row}, [](OpBuilder &inner, Location at, ValueRange in) {
                      Value first = arith::MulFOp::create(inner, at, in[0], in[2]);
                      Value second = arith::MulFOp::create(inner, at, in[1], in[3]);
                      return SmallVector<Value>{arith::AddFOp::create(inner, at, first, second)};
                    });
  return {output.getResult(0), shares.getResult(0)};
}

LogicalResult AttentionOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                                         SmallVectorImpl<Value> &operandGradients) {
  if (resultGradients[1]) {
    return emitOpError("has no derivative of its lse, but the loss depends on it");
  }
  auto queryType = cast<RankedTensorType>(getQuery().getType());
  Value outputGradient =
      createCast(builder, getLoc(), resultGradients[0], queryType.getElementType());
  Type wide = wideTypeOf(queryType.getElementType());
  auto gradient = AttentionGradOp::create(
      builder, getLoc(), queryType.clone(wide), getKey().getType().clone(wide),
      getValue().getType().clone(wide), getQuery(), getKey(), getValue(), getOutput(), getLse(),
      outputGradient, getSeed(), getStep(), getLayer(), getStarts(), getOffsets(), getTurn(),
      getScale(), getDropout(), getWindowAttr(), getBidirectional(), getGlobalShapeAttr(),
      getOrderAttr(), getMeshAttr(), getAxesAttr(), getTurnsAttr());
  operandGradients[0] = gradient.getQueryGradient();
  operandGradients[1] = gradient.getKeyGradient();
  operandGradients[2] = gradient.getValueGradient();
  return success();
}

FactorRule AttentionGradOp::getFactorRule() {
  std::vector<std::string> operands = attentionOperands(*this);
  operands[3] = operands[5] = kOutput;
  operands[4] = kLse;
  return attentionRule(*this, operands, {kQuery, kKey, kValue});
}

OpCost AttentionGradOp::getCost() {
  // Scores are not kept: they are computed again.
  return attentionCost(*this, {3, 2}, {2, 2});
}

SmallVector<unsigned> AttentionGradOp::getPositionFactors() { return attentionPositions(*this); }

void AttentionGradOp::setPosition(ValueRange offsets, ArrayRef<int64_t> globalSizes) {
  getOffsetsMutable().assign(offsets);
  setGlobalShape(globalSizes);
}

SmallVector<unsigned> AttentionGradOp::getSizedFactors() { return getPositionFactors(); }

void AttentionGradOp::setUnpaddedSizes(ArrayRef<int64_t> sizes) { setUnpadded(*this, sizes); }

ArrayRef<int64_t> AttentionGradOp::getUnpaddedSizes() {
  return getGlobalShape().value_or(ArrayRef<int64_t>());
}

bool AttentionGradOp::mayBePadded(unsigned factor) { return mayPadAttention(*this, factor); }

/// All results are linear in the gradient. Keys beyond the end are seen by queries beyond the end
/// alone, which are padding where keys are.
bool AttentionGradOp::isNothingBeyond(unsigned, ArrayRef<unsigned> zeros, unsigned) {
  return llvm::is_contained(zeros, getGradientMutable().getOperandNumber());
}

Position AttentionGradOp::getPosition() { return {getOffsets(), getUnpaddedSizes()}; }

void AttentionGradOp::setOrder(unsigned, ZigzagAttr order) { setOrderAttr(order); }

/// With a window all queries but the first see the same number of keys.
bool AttentionGradOp::growsWithPosition() { return !getBidirectional() && !getWindow(); }

ArrayAttr AttentionGradOp::getPermutedAxes() { return getAxesAttr(); }

MeshAttr AttentionGradOp::getPermutedMesh() { return getMeshAttr(); }

void AttentionGradOp::setPermutation(MeshAttr mesh, ArrayAttr axes) {
  setMeshAttr(mesh);
  setAxesAttr(axes);
}

Operation *AttentionGradOp::createTurn(OpBuilder &builder, ValueRange operands, Value turn) {
  return asTurn(cast<AttentionGradOp>(builder.clone(*getOperation())), operands, turn);
}

SmallVector<Value> AttentionGradOp::joinTurns(OpBuilder &builder, ValueRange some,
                                              ValueRange others) {
  return {createSum(builder, getLoc(), {some[0], others[0]})};
}
