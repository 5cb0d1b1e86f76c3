//===- Bucket.h - several collectives as one ------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A bucket is one collective for several. Its operand holds the operands of all, one after another:
// as [n, …] for n ranks that each get a share of the sum, so that each row is the share of one
// rank, and as [1, …] otherwise. A result [n, …] has the share of each rank in a row.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_SCHEDULE_BUCKET_H
#define WEFT_LIB_PIPELINE_SCHEDULE_BUCKET_H

#include "weft/Dialect/Weft/IR/Weft.h"
#include "weft/Planner/Prices.h"

#include <tuple>

namespace weft {

/// The properties in which collectives of a bucket agree: op, axes, reduction and element type.
using BucketKind = std::tuple<llvm::StringRef, const void *, const void *, const void *>;

/// A collective that can be joined with others of its kind: an all-reduce, a reduce-scatter or an
/// all-gather of floats.
class BucketMember {
public:
  /// Returns nothing if `op` is another op, has a single number or is not on `mesh`.
  static std::optional<BucketMember> get(mlir::Operation *op, MeshAttr mesh);

  mlir::Operation *getOp() const { return op; }
  BucketKind getKind() const;
  double operandBytes() const;
  double resultBytes() const;

  /// Returns the operand as rows, one for each rank that gets a share. Inserts ops at `builder`.
  mlir::Value pack(mlir::OpBuilder &builder) const;
  /// Returns the result, from the packed result.
  mlir::Value unpack(mlir::OpBuilder &builder, mlir::Value packed) const;
  /// Returns the bytes that packing and unpacking have to reorder.
  double permutedBytes() const;

private:
  explicit BucketMember(mlir::Operation *op) : op(op) {}

  mlir::Operation *op;
};

/// Returns the seconds of one collective for all of `members`, with all copies: in, out and into
/// rows.
double priceBucket(llvm::ArrayRef<BucketMember> members, MeshAttr mesh, planner::Prices &prices,
                   const cost::Predictor &machine);

/// Returns the seconds of `member` by itself.
double priceAlone(const BucketMember &member, MeshAttr mesh, planner::Prices &prices);

/// Inserts one collective at `builder`, behind all operands, and replaces the results of `members`
/// by its results. Does not erase `members`. The locations of the new ops are those of all members,
/// fused with a unit attribute.
mlir::Operation *buildBucket(mlir::OpBuilder &builder, llvm::ArrayRef<BucketMember> members);

} // namespace weft

#endif // WEFT_LIB_PIPELINE_SCHEDULE_BUCKET_H
