//===- Bucket.cpp - several collectives as one ----------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Bucket.h"

#include "Packing.h"
#include "weft/Dialect/Weft/IR/Sharding.h"
#include "weft/Pipeline/ReshardProblem.h"

using namespace mlir;
using namespace weft;

namespace {

RankedTensorType operandType(Operation *op) {
  return cast<RankedTensorType>(op->getOperand(0).getType());
}
RankedTensorType resultType(Operation *op) {
  return cast<RankedTensorType>(op->getResult(0).getType());
}

/// The dimension along which shares lie; none for an all-reduce.
int64_t dimOf(Operation *op) {
  auto dim = op->getAttrOfType<IntegerAttr>("dim");
  return dim ? dim.getInt() : 0;
}

/// One side of the collective; `other` is the other one.
Shares sharesOf(Operation *op, RankedTensorType type, RankedTensorType other) {
  int64_t count = type.getNumElements() / std::max<int64_t>(1, other.getNumElements());
  return {type, dimOf(op), std::max<int64_t>(1, count)};
}
Shares operandShares(Operation *op) { return sharesOf(op, operandType(op), resultType(op)); }
Shares resultShares(Operation *op) { return sharesOf(op, resultType(op), operandType(op)); }

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
  return operandShares(op).pack(builder, op->getLoc(), op->getOperand(0));
}

Value BucketMember::unpack(OpBuilder &builder, Value packed) const {
  return resultShares(op).unpack(builder, op->getLoc(), packed);
}

double BucketMember::permutedBytes() const {
  return (operandShares(op).areScattered() ? operandBytes() : 0) +
         (resultShares(op).areScattered() ? resultBytes() : 0);
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
  int64_t shares = operandShares(first).count, sharesAfter = resultShares(first).count;
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
