//===- Bucket.h - several collectives as one ------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The operands of n ranks' collectives, one after another, are the operand of one: of shape
// [n, …] where each rank keeps a share of the sum, so that the share of a rank is a row, and of
// shape [1, …] else. What is [n, …] afterwards has the share of each rank in a row.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_SCHEDULE_BUCKET_H
#define WEFT_LIB_PIPELINE_SCHEDULE_BUCKET_H

#include "weft/Dialect/Weft/IR/Weft.h"
#include "weft/Planner/Prices.h"

#include <tuple>

namespace weft {

/// What collectives must agree in to be one: op, axes, reduction and element type.
using BucketKind = std::tuple<llvm::StringRef, const void *, const void *, const void *>;

/// A collective that can be joined with others of its kind: an all-reduce, a reduce-scatter or an
/// all-gather of floats.
class BucketMember {
public:
  /// Nothing, where `op` is something else, of a single number or not on `mesh`.
  static std::optional<BucketMember> get(mlir::Operation *op, MeshAttr mesh);

  mlir::Operation *getOp() const { return op; }
  BucketKind getKind() const;
  double operandBytes() const;
  double resultBytes() const;

  /// Operand as rows, one for each rank that gets a share. The new ops stand at `builder`.
  mlir::Value pack(mlir::OpBuilder &builder) const;
  /// The result, given what it is packed.
  mlir::Value unpack(mlir::OpBuilder &builder, mlir::Value packed) const;
  /// Bytes that have to be put in another order for that, before and after.
  double permutedBytes() const;

private:
  explicit BucketMember(mlir::Operation *op) : op(op) {}

  mlir::Operation *op;
};

/// What one collective for all of `members` takes, with all copies: in, out and into rows.
double priceBucket(llvm::ArrayRef<BucketMember> members, MeshAttr mesh, planner::Prices &prices,
                   const cost::Predictor &machine);

/// What `member` takes by itself.
double priceAlone(const BucketMember &member, MeshAttr mesh, planner::Prices &prices);

/// Puts one collective where `builder` is, which all operands must precede, and lets what used the
/// results of `members` use its. They are still there afterwards, for nothing. Locations of the new
/// ops are those of all members, fused with a unit attribute.
mlir::Operation *buildBucket(mlir::OpBuilder &builder, llvm::ArrayRef<BucketMember> members);

} // namespace weft

#endif // WEFT_LIB_PIPELINE_SCHEDULE_BUCKET_H
