//===- Bucket.cpp - several collectives as one ----------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Bucket.h"

#include "weft/Dialect/Weft/IR/Sharding.h"
#include "weft/Pipeline/ReshardProblem.h"

#include <numeric>

using namespace mlir;
using namespace weft;

namespace {

RankedTensorType operandType(Operation *op) {
  return cast<RankedTensorType>(op->getOperand(0).getType());
}
RankedTensorType resultType(Operation *op) {
  return cast<RankedTensorType>(op->getResult(0).getType());
}

int64_t product(ArrayRef<int64_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t(1), std::multiplies<>());
}

/// Ranks whose shares `type` has, if the other side of the collective has one.
int64_t sharesOf(RankedTensorType type, RankedTensorType other) {
  return std::max<int64_t>(1, type.getNumElements() / std::max<int64_t>(1, other.getNumElements()));
}

/// Along which shares lie; none of an all-reduce.
int64_t dimOf(Operation *op) {
  auto dim = op->getAttrOfType<IntegerAttr>("dim");
  return dim ? dim.getInt() : 0;
}

/// Whether `shares` along `dim` do not lie one after another in memory.
bool areScattered(RankedTensorType type, int64_t dim, int64_t shares) {
  return shares > 1 && product(type.getShape().take_front(dim)) > 1;
}

/// The same elements in the same order; `shape` has as many.
Value reshape(OpBuilder &builder, Location loc, Value value, ArrayRef<int64_t> shape) {
  auto change = [&](ArrayRef<int64_t> to, int64_t longerRank) {
    auto type = cast<RankedTensorType>(value.getType()).clone(to);
    Attribute group = builder.getI64ArrayAttr(llvm::to_vector(llvm::seq<int64_t>(0, longerRank)));
    value = ReshapeOp::create(builder, loc, type, value, builder.getArrayAttr(group));
  };
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getShape() == shape) {
    return value;
  }
  if (type.getRank() > 1) {
    change(type.getNumElements(), type.getRank());
  }
  if (shape.size() > 1) {
    change(shape, shape.size());
  }
  return value;
}

/// The first two of the dimensions `shape`, which `value` is taken to have, exchanged.
Value exchange(OpBuilder &builder, Location loc, Value value, std::array<int64_t, 3> shape) {
  value = reshape(builder, loc, value, shape);
  std::swap(shape[0], shape[1]);
  auto type = cast<RankedTensorType>(value.getType()).clone(shape);
  return ContractOp::create(builder, loc, type, "abc->bac", value);
}

planner::StepKind stepKind(Operation *op) {
  return isa<AllReduceOp>(op)       ? planner::StepKind::AllReduce
         : isa<ReduceScatterOp>(op) ? planner::StepKind::ReduceScatter
                                    : planner::StepKind::AllGather;
}

double priceCollective(Operation *op, MeshAttr mesh, double bytes, planner::Prices &prices) {
  return prices(stepKind(op), toAxes(mesh, op->getAttrOfType<ArrayAttr>("axes")), bytes);
}

} // namespace

std::optional<BucketMember> BucketMember::get(Operation *op, MeshAttr mesh) {
  if (!isa<AllReduceOp, ReduceScatterOp, AllGatherOp>(op) || op->getAttr("mesh") != mesh ||
      operandType(op).getRank() == 0 || !isa<FloatType>(operandType(op).getElementType()) ||
      operandType(op).getNumElements() == 0) {
    return std::nullopt;
  }
  return BucketMember(op);
}

BucketKind BucketMember::getKind() const {
  return {op->getName().getStringRef(), op->getAttr("axes").getAsOpaquePointer(),
          op->getAttr("reduction").getAsOpaquePointer(),
          operandType(op).getElementType().getAsOpaquePointer()};
}

double BucketMember::operandBytes() const { return double(countBytes(operandType(op))); }
double BucketMember::resultBytes() const { return double(countBytes(resultType(op))); }

Value BucketMember::pack(OpBuilder &builder) const {
  Value value = op->getOperand(0);
  RankedTensorType type = operandType(op);
  int64_t shares = sharesOf(type, resultType(op)), size = type.getNumElements();
  if (areScattered(type, dimOf(op), shares)) {
    int64_t outer = product(type.getShape().take_front(dimOf(op)));
    value = exchange(builder, op->getLoc(), value, {outer, shares, size / (outer * shares)});
  }
  return reshape(builder, op->getLoc(), value, {shares, size / shares});
}

Value BucketMember::unpack(OpBuilder &builder, Value packed) const {
  RankedTensorType type = resultType(op);
  int64_t shares = sharesOf(type, operandType(op)), size = type.getNumElements();
  if (areScattered(type, dimOf(op), shares)) {
    int64_t outer = product(type.getShape().take_front(dimOf(op)));
    packed = exchange(builder, op->getLoc(), packed, {shares, outer, size / (outer * shares)});
  }
  return reshape(builder, op->getLoc(), packed, type.getShape());
}

double BucketMember::permutedBytes() const {
  bool before = areScattered(operandType(op), dimOf(op), sharesOf(operandType(op), resultType(op)));
  bool after = areScattered(resultType(op), dimOf(op), sharesOf(resultType(op), operandType(op)));
  return (before ? operandBytes() : 0) + (after ? resultBytes() : 0);
}

double weft::priceAlone(const BucketMember &member, MeshAttr mesh, planner::Prices &prices) {
  return priceCollective(member.getOp(), mesh, member.operandBytes(), prices);
}

double weft::priceBucket(ArrayRef<BucketMember> members, MeshAttr mesh, planner::Prices &prices,
                         const cost::Predictor &machine) {
  // Each byte is read and written.
  auto copy = [&](StringRef kind, double bytes) {
    return machine.kernel(kind, desc::Precision::F32, /*flops=*/0, 2 * bytes);
  };
  double operands = 0, results = 0, seconds = 0;
  for (const BucketMember &member : members) {
    operands += member.operandBytes();
    results += member.resultBytes();
    double permuted = member.permutedBytes();
    seconds += permuted > 0 ? copy("contract", permuted) : 0;
  }
  return seconds + copy("concat", operands) + copy("split", results) +
         priceCollective(members.front().getOp(), mesh, operands, prices);
}

Operation *weft::buildBucket(OpBuilder &builder, ArrayRef<BucketMember> members) {
  auto locations = llvm::map_to_vector(
      members, [](const BucketMember &member) { return member.getOp()->getLoc(); });
  Location loc = builder.getFusedLoc(locations, builder.getUnitAttr());
  SmallVector<Value> packed;
  int64_t length = 0;
  for (const BucketMember &member : members) {
    packed.push_back(member.pack(builder));
    length += cast<RankedTensorType>(packed.back().getType()).getDimSize(1);
  }
  auto rowsOf = [&](int64_t rows, int64_t columns) {
    return operandType(members.front().getOp()).clone({rows, columns});
  };
  Operation *first = members.front().getOp();
  int64_t shares = sharesOf(operandType(first), resultType(first));
  int64_t sharesAfter = sharesOf(resultType(first), operandType(first));
  Value whole = ConcatOp::create(builder, loc, rowsOf(shares, length), packed, /*dim=*/1);

  Operation *joined = builder.clone(*first);
  joined->setLoc(loc);
  joined->setOperand(0, whole);
  joined->getResult(0).setType(rowsOf(sharesAfter, length));
  if (joined->hasAttr("dim")) {
    joined->setAttr("dim", builder.getI64IntegerAttr(0));
  }

  auto types = llvm::map_to_vector(packed, [&](Value part) -> Type {
    return rowsOf(sharesAfter, cast<RankedTensorType>(part.getType()).getDimSize(1));
  });
  auto parts = SplitOp::create(builder, loc, types, joined->getResult(0), /*dim=*/1);
  for (auto [member, part] : llvm::zip_equal(members, parts.getOutputs())) {
    member.getOp()->getResult(0).replaceAllUsesWith(member.unpack(builder, part));
  }
  return joined;
}
