//===- PoolOps.cpp - pools, means over groups, and softmax --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Dialect/Weft/IR/ElementTypes.h"
#include "weft/Dialect/Weft/IR/MapBuilders.h"
#include "weft/Dialect/Weft/IR/Sharding.h"
#include "weft/Dialect/Weft/IR/Windows.h"

using namespace mlir;
using namespace weft;

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

//===----------------------------------------------------------------------===//
// Pool
//===----------------------------------------------------------------------===//

namespace {
/// Dimensions of a pool's input, and of its output.
std::string inputDims(RankedTensorType type) { return "nc" + letters(type.getRank() - 2, 'p'); }
std::string outputDims(RankedTensorType type) { return "nc" + letters(type.getRank() - 2, 'v'); }
constexpr const char *kPlaces = "pqrvwx";

/// Checks pool_c1, which the factors depend on.
LogicalResult verifyImages(Operation *op, RankedTensorType input, RankedTensorType output) {
  if (!isImage(input) || !isImage(output) || input.getRank() != output.getRank()) {
    return op->emitOpError() << "expected images of [samples, channels, places…] with three to "
                                "five dimensions, got "
                             << input << " and " << output;
  }
  return success();
}

/// Checks pool_c4. Windows start at rising places, and the places of each are `dilation` apart.
LogicalResult verifyWindowsAreInside(Operation *op, ArrayRef<Window> windows,
                                     RankedTensorType input) {
  for (auto [number, window] : llvm::enumerate(windows)) {
    int64_t size = input.getDimSize(number + 2);
    for (int64_t p = 0, outputs = window.countOutputs(size); p < outputs; ++p) {
      int64_t first = p * window.stride - window.low;
      // The first place of the window that is not before the image.
      int64_t skipped = first >= 0 ? 0 : llvm::divideCeil(-first, window.dilation);
      if (skipped >= window.size || first + skipped * window.dilation >= size) {
        return op->emitOpError() << "window " << p << " of dimension " << number + 2
                                 << " holds no place of the image";
      }
    }
  }
  return success();
}

template <typename OpTy>
LogicalResult verifyPool(OpTy op, RankedTensorType input, RankedTensorType output) {
  ArrayRef<int64_t> sizes = op.getSizes();
  if (static_cast<int64_t>(sizes.size()) != input.getRank() - 2) {
    return op.emitOpError() << "sizes: expected " << input.getRank() - 2
                            << " entries, one for each dimension of places, got " << sizes.size();
  }
  if (failed(verifyWindowAttributes(op, sizes, op.getStrides(), op.getLow(), op.getHigh(),
                                    op.getDilations()))) { // pool_c2
    return failure();
  }
  SmallVector<Window> windows = windowsOf(op, sizes);
  if (failed(verifyPlaces(op, windows, input, output)) || // pool_c3
      failed(verifyWindowsAreInside(op, windows, input))) {
    return failure();
  }
  return success();
}

template <typename OpTy> OpCost poolCost(OpTy op, RankedTensorType output) {
  double perOutput = 1;
  for (int64_t size : op.getSizes()) {
    perOutput *= static_cast<double>(size);
  }
  OpCost cost = elementwiseCost(op, 0);
  cost.flops = elementCount(output.getShape(), perOutput);
  return cost;
}
} // namespace

LogicalResult PoolOp::verify() {
  if (failed(verifyPool(*this, typeOf(getInput()), typeOf(getOutput())))) {
    return failure();
  }
  return verifyOneElementType(*this); // pool_c5
}

FactorRule PoolOp::getFactorRule() {
  RankedTensorType input = typeOf(getInput()), output = typeOf(getOutput());
  if (failed(verifyImages(*this, input, output))) {
    return {};
  }
  return makeFactorRule(*this, {inputDims(input)}, {outputDims(output)}, kPlaces);
}

bool PoolOp::isAdditiveIn(ArrayRef<unsigned>) { return getKind() == PoolKind::Sum; }

OpCost PoolOp::getCost() { return poolCost(*this, typeOf(getOutput())); }

LogicalResult PoolOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                                    SmallVectorImpl<Value> &operandGradients) {
  RankedTensorType type = typeOf(getInput());
  Type element = type.getElementType();
  Value gradient = createCast(builder, getLoc(), resultGradients[0], element);
  operandGradients[0] =
      PoolGradOp::create(builder, getLoc(), type.clone(wideTypeOf(element)), getKind(), gradient,
                         getKind() == PoolKind::Max ? getInput() : Value(), getSizes(),
                         getStrides(), getLow(), getHigh(), getDilations());
  return success();
}

LogicalResult PoolGradOp::verify() {
  if (bool(getInput()) != (getKind() == PoolKind::Max)) { // pool_grad_c1
    return emitOpError("expected an input if and only if the kind is max");
  }
  if (failed(verifyPool(*this, typeOf(getOutput()), typeOf(getGradient())))) { // pool_grad_c2
    return failure();
  }
  return verifyOperandsOrWide(*this);
}

FactorRule PoolGradOp::getFactorRule() {
  RankedTensorType input = typeOf(getOutput()), gradient = typeOf(getGradient());
  if (failed(verifyImages(*this, input, gradient))) {
    return {};
  }
  std::vector<std::string> operands = {outputDims(gradient)};
  if (getInput()) {
    operands.push_back(inputDims(input));
  }
  return makeFactorRule(*this, operands, {inputDims(input)}, kPlaces);
}

bool PoolGradOp::isAdditiveIn(ArrayRef<unsigned> operands) {
  return operands == ArrayRef<unsigned>{0};
}

OpCost PoolGradOp::getCost() { return poolCost(*this, typeOf(getGradient())); }

//===----------------------------------------------------------------------===//
// Means over groups
//===----------------------------------------------------------------------===//

LogicalResult GroupMeanOp::verify() {
  if (getCount() < 1) { // group_mean_c2
    return emitOpError() << "expected groups of at least one sample, got " << getCount();
  }
  RankedTensorType local = getLocalType(typeOf(getInput()));
  int64_t samples = local.getDimSize(0);
  if (!ShapedType::isDynamic(samples) && samples % getCount() != 0) {
    return emitOpError() << "has " << samples << " samples on a rank, expected a multiple of the "
                         << getCount() << " of a group";
  }
  return verifyOneElementType(*this); // group_mean_c1
}

FactorRule GroupMeanOp::getFactorRule() {
  if (typeOf(getInput()).getRank() == 0) { // group_mean_c1
    emitOpError("expected a tensor whose first dimension is the sample, got a scalar");
    return {};
  }
  std::string dims = letters(typeOf(getInput()).getRank());
  FactorRule rule = makeFactorRule(*this, {dims}, {dims});
  // Groups are not cut, so there are at most as many shards as groups.
  int64_t &samples = rule.factors[0].size;
  if (!ShapedType::isDynamic(samples) && getCount() >= 1) {
    samples /= static_cast<int64_t>(getCount());
  }
  return rule;
}

bool GroupMeanOp::isAdditiveIn(ArrayRef<unsigned>) { return true; }

OpCost GroupMeanOp::getCost() { return elementwiseCost(*this, 1); }

LogicalResult GroupMeanOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                                         SmallVectorImpl<Value> &operandGradients) {
  operandGradients[0] =
      GroupMeanOp::create(builder, getLoc(), getInput().getType(), resultGradients[0], getCount());
  return success();
}

//===----------------------------------------------------------------------===//
// Softmax
//===----------------------------------------------------------------------===//

LogicalResult SoftmaxOp::verify() {
  int64_t columns = typeOf(getInput()).getShape().back();
  return failure(failed(verifyOneElementType(*this)) ||
                 failed(verifyUnpaddedColumns(*this, getColumns(), columns))); // softmax_c2
}

FactorRule SoftmaxOp::getFactorRule() {
  int64_t rank = typeOf(getInput()).getRank();
  if (rank == 0) { // softmax_c1
    emitOpError("expected a tensor with a last dimension, got a scalar");
    return {};
  }
  std::string dims = letters(rank - 1) + "z";
  return makeFactorRule(*this, {dims}, {dims}, "z");
}

OpCost SoftmaxOp::getCost() { return elementwiseCost(*this, 4); }

SmallVector<unsigned> SoftmaxOp::getSizedFactors() { return {getFactorRule().operands[0].back()}; }

void SoftmaxOp::setUnpaddedSizes(ArrayRef<int64_t> sizes) { setColumns(sizes); }

ArrayRef<int64_t> SoftmaxOp::getUnpaddedSizes() {
  return getColumns().value_or(ArrayRef<int64_t>());
}

bool SoftmaxOp::mayBePadded(unsigned) { return true; }

bool SoftmaxOp::isNothingBeyond(unsigned factor, ArrayRef<unsigned>, unsigned) {
  return factor == getSizedFactors()[0];
}

/// With y the output and g its gradient: y * (g - sum of y * g).
LogicalResult SoftmaxOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                                       SmallVectorImpl<Value> &operandGradients) {
  RankedTensorType type = typeOf(getOutput());
  std::string dims = letters(type.getRank()), rows = letters(type.getRank() - 1);
  Value sums = ContractOp::create(builder, getLoc(), type.clone(type.getShape().drop_back()),
                                  dims + "," + dims + "->" + rows,
                                  ValueRange{getOutput(), resultGradients[0]});
  AffineMap whole = builder.getMultiDimIdentityMap(type.getRank());
  AffineMap ofRow = whole.dropResult(type.getRank() - 1);
  auto body = [](OpBuilder &inner, Location loc, ValueRange in) {
    Value rest = arith::SubFOp::create(inner, loc, in[1], in[2]);
    return SmallVector<Value>{arith::MulFOp::create(inner, loc, in[0], rest)};
  };
  operandGradients[0] =
      MapOp::create(builder, getLoc(), TypeRange{type},
                    ValueRange{getOutput(), resultGradients[0], sums}, {whole, whole, ofRow}, body)
          .getResult(0);
  return success();
}
