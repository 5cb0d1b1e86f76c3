//===- CollectiveOps.cpp - reshards and collectives ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Dialect/Weft/IR/Sharding.h"

using namespace mlir;
using namespace weft;

//===----------------------------------------------------------------------===//
// Shared checks
//===----------------------------------------------------------------------===//

namespace {
RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// Checks group_c1, and that both sides are sharded on `mesh` or neither is.
LogicalResult verifyGroup(Operation *op, MeshAttr mesh, ArrayAttr axes, Value input, Value output) {
  if (axes.empty()) {
    return op->emitOpError("needs at least one axis");
  }
  for (auto [i, axis] : llvm::enumerate(axes)) {
    if (mesh.getIndex(cast<StringAttr>(axis)) < 0) {
      return op->emitOpError() << "axis " << axis << " is not in the mesh " << mesh;
    }
    if (llvm::is_contained(axes.getValue().take_front(i), axis)) {
      return op->emitOpError() << "axis " << axis << " occurs twice";
    }
  }
  if (typeOf(input).getElementType() != typeOf(output).getElementType()) {
    return op->emitOpError("input and output must have one element type");
  }
  if (typeOf(input).getRank() != typeOf(output).getRank()) {
    return op->emitOpError("input and output must have the same number of dimensions");
  }
  ShardingAttr from = getSharding(input.getType()), to = getSharding(output.getType());
  if (bool(from) != bool(to)) {
    return op->emitOpError("input and output must both be sharded or both be local");
  }
  if (from && (from.getMesh() != mesh || to.getMesh() != mesh)) {
    return op->emitOpError("input, output and op must agree on the mesh");
  }
  if (from && typeOf(input).getShape() != typeOf(output).getShape()) {
    return op->emitOpError("does not change the shape of the whole value");
  }
  return success();
}

LogicalResult verifyDim(Operation *op, Value input, int64_t dim) {
  if (dim < 0 || dim >= typeOf(input).getRank()) {
    return op->emitOpError() << "dimension " << dim << " does not exist, the tensor has "
                             << typeOf(input).getRank();
  }
  return success();
}

LogicalResult expectSharding(Operation *op, Value output, ShardingAttr expected) {
  if (getSharding(output.getType()) != expected) {
    return op->emitOpError() << "must result in " << expected << ", got "
                             << getSharding(output.getType());
  }
  return success();
}

LogicalResult expectLocal(Operation *op, Value output, ArrayRef<int64_t> shape) {
  if (typeOf(output).getShape() != shape) {
    return op->emitOpError() << "must result in the shape [" << shape << "], got ["
                             << typeOf(output).getShape() << "]";
  }
  return success();
}

/// Returns `sharding` with `axes` removed from its unreduced axes.
ShardingAttr reduceOver(ShardingAttr sharding, ArrayAttr axes) {
  SmallVector<Attribute> left;
  for (Attribute axis : sharding.getUnreduced()) {
    if (!llvm::is_contained(axes, axis)) {
      left.push_back(axis);
    }
  }
  return withUnreduced(sharding, left, left.empty() ? ReductionKind::Sum : sharding.getReduction());
}

/// Returns true if `sharding` is pending by `reduction` over all of `axes`.
LogicalResult expectPending(Operation *op, ShardingAttr sharding, ArrayAttr axes,
                            ReductionKind reduction) {
  for (Attribute axis : axes) {
    if (!llvm::is_contained(sharding.getUnreduced(), axis) ||
        sharding.getReduction() != reduction) {
      return op->emitOpError() << "expected an input pending by "
                               << stringifyReductionKind(reduction) << " over " << axis << ", got "
                               << sharding;
    }
  }
  return success();
}

LogicalResult expectMinorAxes(Operation *op, ShardingAttr sharding, int64_t dim, ArrayAttr axes) {
  if (!endsWith(sharding.getDims()[dim], axes)) {
    return op->emitOpError() << "expected " << axes << " as the last axes of dimension " << dim
                             << ", got " << sharding.getDims()[dim];
  }
  return success();
}

/// Checks that `sharding` is replicated over `axes`, so that they can get another state.
LogicalResult expectFree(Operation *op, ShardingAttr sharding, ArrayAttr axes) {
  for (Attribute axis : axes) {
    bool isCutting = llvm::any_of(sharding.getDims(),
                                  [&](ArrayAttr dim) { return llvm::is_contained(dim, axis); });
    if (isCutting || llvm::is_contained(sharding.getUnreduced(), axis)) {
      return op->emitOpError() << "expected an input that is replicated over " << axis << ", got "
                               << sharding;
    }
  }
  return success();
}

SmallVector<int64_t> scaled(ArrayRef<int64_t> shape, int64_t dim, int64_t factor) {
  SmallVector<int64_t> result(shape);
  result[dim] *= factor;
  return result;
}

/// Checks, for local types, that the longer side's dimension is a multiple of the group's size.
LogicalResult expectDivisible(Operation *op, ArrayRef<int64_t> shape, int64_t dim, int64_t shards) {
  if (shape[dim] % shards != 0) {
    return op->emitOpError() << "dimension " << dim << " of size " << shape[dim]
                             << " must be a multiple of the group's " << shards << " ranks";
  }
  return success();
}

/// Checks slice_c3 and partial_c2.
LogicalResult expectIndex(Operation *op, Value input, Value index) {
  if (bool(getSharding(input.getType())) == bool(index)) {
    return op->emitOpError(index ? "takes no index before tensors are local"
                                 : "needs this rank's index once tensors are local");
  }
  return success();
}
} // namespace

//===----------------------------------------------------------------------===//
// Reshard
//===----------------------------------------------------------------------===//

LogicalResult ReshardOp::verify() {
  ShardingAttr from = getSharding(getInput().getType()), to = getSharding(getOutput().getType());
  if (!from || !to || from.getMesh() != to.getMesh() ||
      withSharding(typeOf(getInput()), {}) != withSharding(typeOf(getOutput()), {})) {
    return emitOpError("input and output must differ in their sharding only"); // reshard_c1
  }
  for (Attribute axis : to.getUnreduced()) { // reshard_c2
    bool isNew = !llvm::is_contained(from.getUnreduced(), axis);
    bool isSum = to.getReduction() == ReductionKind::Sum;
    if ((!from.isReduced() && to.getReduction() != from.getReduction()) || (isNew && !isSum)) {
      return emitOpError() << "cannot make " << from << " pending as " << to;
    }
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

LogicalResult AllReduceOp::verify() {
  if (failed(verifyGroup(*this, getMesh(), getAxes(), getInput(), getOutput()))) {
    return failure();
  }
  ShardingAttr from = getSharding(getInput().getType());
  if (!from) { // all_reduce_c2
    return expectLocal(*this, getOutput(), typeOf(getInput()).getShape());
  }
  return failure(failed(expectPending(*this, from, getAxes(), getReduction())) ||
                 failed(expectSharding(*this, getOutput(), reduceOver(from, getAxes()))));
}

LogicalResult AllGatherOp::verify() {
  if (failed(verifyGroup(*this, getMesh(), getAxes(), getInput(), getOutput())) ||
      failed(verifyDim(*this, getInput(), getDim()))) {
    return failure();
  }
  ShardingAttr from = getSharding(getInput().getType());
  if (!from) { // all_gather_c2
    return expectLocal(
        *this, getOutput(),
        scaled(typeOf(getInput()).getShape(), getDim(), getMesh().getSize(getAxes())));
  }
  if (failed(expectMinorAxes(*this, from, getDim(), getAxes()))) { // all_gather_c1
    return failure();
  }
  ArrayAttr left = dropBack(from.getDims()[getDim()], getAxes().size());
  return expectSharding(*this, getOutput(), withDim(from, getDim(), left));
}

LogicalResult ReduceScatterOp::verify() {
  if (failed(verifyGroup(*this, getMesh(), getAxes(), getInput(), getOutput())) ||
      failed(verifyDim(*this, getInput(), getDim()))) {
    return failure();
  }
  ShardingAttr from = getSharding(getInput().getType());
  if (!from) { // reduce_scatter_c2
    int64_t shards = getMesh().getSize(getAxes());
    if (failed(expectDivisible(*this, typeOf(getInput()).getShape(), getDim(), shards))) {
      return failure();
    }
    return expectLocal(*this, getInput(), scaled(typeOf(getOutput()).getShape(), getDim(), shards));
  }
  if (failed(expectPending(*this, from, getAxes(), getReduction()))) { // reduce_scatter_c1
    return failure();
  }
  ShardingAttr reduced = reduceOver(from, getAxes());
  return expectSharding(
      *this, getOutput(),
      withDim(reduced, getDim(), appendAxes(reduced.getDims()[getDim()], getAxes())));
}

LogicalResult AllToAllOp::verify() {
  if (failed(verifyGroup(*this, getMesh(), getAxes(), getInput(), getOutput())) ||
      failed(verifyDim(*this, getInput(), getSplit())) ||
      failed(verifyDim(*this, getInput(), getConcat()))) {
    return failure();
  }
  if (getSplit() == getConcat()) {
    return emitOpError() << "splits and joins the same dimension " << getSplit();
  }
  ShardingAttr from = getSharding(getInput().getType());
  if (!from) { // all_to_all_c2
    int64_t shards = getMesh().getSize(getAxes());
    SmallVector<int64_t> shape = scaled(typeOf(getInput()).getShape(), getConcat(), shards);
    if (failed(expectDivisible(*this, shape, getSplit(), shards))) {
      return failure();
    }
    shape[getSplit()] /= shards;
    return expectLocal(*this, getOutput(), shape);
  }
  if (failed(expectMinorAxes(*this, from, getConcat(), getAxes()))) { // all_to_all_c1
    return failure();
  }
  ShardingAttr moved =
      withDim(from, getConcat(), dropBack(from.getDims()[getConcat()], getAxes().size()));
  return expectSharding(
      *this, getOutput(),
      withDim(moved, getSplit(), appendAxes(moved.getDims()[getSplit()], getAxes())));
}

/// Checks permute_c2 for one rank: the source of `member` holds the shard that `member` needs, for
/// all coordinates on other axes.
static LogicalResult verifyShards(PermuteOp op, ShardingAttr from, ShardingAttr to) {
  MeshAttr mesh = op.getMesh();
  if (from.getUnreduced() != to.getUnreduced() ||
      (!from.isReduced() && from.getReduction() != to.getReduction())) {
    return op.emitOpError("input and output must have the same unreduced axes");
  }
  for (int64_t dim = 0, rank = from.getDims().size(); dim < rank; ++dim) {
    if (from.getShards(dim) != to.getShards(dim)) {
      return op.emitOpError() << "dimension " << dim << " is cut in " << from.getShards(dim)
                              << " shards, and then in " << to.getShards(dim);
    }
  }
  for (int64_t number = 0; number < mesh.getRankCount(); ++number) {
    SmallVector<int64_t> coordinates = mesh.getCoordinates(number), source = coordinates;
    int64_t member = 0;
    for (StringAttr axis : op.getAxes().getAsRange<StringAttr>()) {
      member = member * mesh.getSize(axis) + coordinates[mesh.getIndex(axis)];
    }
    int64_t taken = op.getSources()[member];
    for (Attribute attribute : llvm::reverse(op.getAxes())) {
      auto axis = cast<StringAttr>(attribute);
      source[mesh.getIndex(axis)] = taken % mesh.getSize(axis);
      taken /= mesh.getSize(axis);
    }
    for (int64_t dim = 0, rank = from.getDims().size(); dim < rank; ++dim) {
      if (from.getShard(dim, source) != to.getShard(dim, coordinates)) {
        return op.emitOpError() << "rank " << number << " gets shard " << from.getShard(dim, source)
                                << " of dimension " << dim << ", expected "
                                << to.getShard(dim, coordinates);
      }
    }
  }
  return success();
}

LogicalResult PermuteOp::verify() {
  if (failed(verifyGroup(*this, getMesh(), getAxes(), getInput(), getOutput()))) {
    return failure();
  }
  SmallVector<int32_t> sorted(getSources());
  llvm::sort(sorted);
  if (int64_t(sorted.size()) != getMesh().getSize(getAxes()) ||
      !llvm::equal(sorted, llvm::seq<int32_t>(0, sorted.size()))) { // permute_c1
    return emitOpError() << "must name each of the group's " << getMesh().getSize(getAxes())
                         << " ranks once, got [" << getSources() << "]";
  }
  ShardingAttr from = getSharding(getInput().getType());
  return from ? verifyShards(*this, from, getSharding(getOutput().getType()))
              : expectLocal(*this, getOutput(), typeOf(getInput()).getShape()); // permute_c3
}

//===----------------------------------------------------------------------===//
// Movements within a rank
//===----------------------------------------------------------------------===//

LogicalResult SliceOp::verify() {
  if (failed(verifyGroup(*this, getMesh(), getAxes(), getInput(), getOutput())) ||
      failed(verifyDim(*this, getInput(), getDim())) ||
      failed(expectIndex(*this, getInput(), getIndex()))) { // slice_c3
    return failure();
  }
  ShardingAttr from = getSharding(getInput().getType());
  if (!from) { // slice_c2
    int64_t shards = getMesh().getSize(getAxes());
    if (failed(expectDivisible(*this, typeOf(getInput()).getShape(), getDim(), shards))) {
      return failure();
    }
    return expectLocal(*this, getInput(), scaled(typeOf(getOutput()).getShape(), getDim(), shards));
  }
  if (failed(expectFree(*this, from, getAxes()))) { // slice_c1
    return failure();
  }
  return expectSharding(*this, getOutput(),
                        withDim(from, getDim(), appendAxes(from.getDims()[getDim()], getAxes())));
}

LogicalResult PartialOp::verify() {
  if (failed(verifyGroup(*this, getMesh(), getAxes(), getInput(), getOutput())) ||
      failed(expectIndex(*this, getInput(), getIndex()))) {
    return failure();
  }
  ShardingAttr from = getSharding(getInput().getType());
  if (!from) { // partial_c2
    return expectLocal(*this, getOutput(), typeOf(getInput()).getShape());
  }
  if (!from.isReduced() && from.getReduction() != ReductionKind::Sum) { // partial_c1
    return emitOpError() << "cannot make " << from << " a pending sum";
  }
  if (failed(expectFree(*this, from, getAxes()))) {
    return failure();
  }
  ArrayAttr pending = joinAxes(from.getUnreduced(), getAxes());
  return expectSharding(*this, getOutput(),
                        withUnreduced(from, pending.getValue(), ReductionKind::Sum));
}

LogicalResult AxisIndexOp::verify() {
  if (getMesh().getIndex(getAxisAttr()) < 0) { // axis_index_c1
    return emitOpError() << "axis " << getAxisAttr() << " is not in the mesh " << getMesh();
  }
  return success();
}
