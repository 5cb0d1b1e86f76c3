//===- Sharding.h - the algebra of shardings ----------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//
// A mesh is a box of ranks with named axes: <"dp"=2, "tp"=2> has four ranks, numbered
// row-major,
//
//              tp=0  tp=1
//        dp=0    0     1
//        dp=1    2     3
//
// A sharding says for each dimension of a tensor over which axes it is cut. Take a tensor
// of 4 x 4:
//
//   [{}, {}]            every rank holds all 16 elements
//   [{"dp"}, {}]        ranks 0 and 1 hold rows 0-1, ranks 2 and 3 rows 2-3
//   [{"dp"}, {"tp"}]    rank 1 holds rows 0-1 of columns 2-3
//   [{"dp","tp"}, {}]   rank 1 holds row 1: dp is major, tp minor
//
// An axis that no dimension uses replicates: the ranks along it hold the same.
// A dimension may use several axes; the first cuts first (major), the next cuts each shard.
//
// A tensor may need only a part of an axis, as two heads of keys beside eight ranks of "tp". Its
// parts are then axes: <"tp"=2, "tp_group"=4> has the same ranks in the same order, a dimension
// that all of it cuts is cut by ["tp","tp_group"], and the heads are cut by ["tp"] and replicated
// over the rest. (Pins do so by themselves, see desc::fitPins.)
//
// The third state of an axis is unreduced. `unreduced = sum{"tp"}` says: what a rank holds
// is one term, and the value is the sum of the terms over tp. A matmul whose summed
// dimension is cut leaves its result so. Nothing was communicated yet, and often nothing
// must be: the sum of two unreduced sums is an unreduced sum, and so is one times a scale.
// But exp(a + b) is not exp(a) + exp(b), and (a + b)(c + d) is not ac + bd: there the value
// has to be reduced first, by a `weft.reshard`. Which ops may take an unreduced operand they
// say themselves (ShardableOpInterface::isAdditiveIn).
//
// An axis does one thing at a time: it cuts one dimension, or is unreduced, or replicates.
// Sharded tensors are tensors of the whole shape whose type carries the sharding as its
// encoding; `getLocalType` is what one rank holds of it.
//
// Unreduced axes stand in the order of the mesh, so that equal shardings are equal
// attributes.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DIALECT_WEFT_IR_SHARDING_H
#define WEFT_DIALECT_WEFT_IR_SHARDING_H

#include "weft/Dialect/Weft/IR/Weft.h"

namespace weft {

/// The sharding that a type carries, or null.
ShardingAttr getSharding(mlir::Type type);

/// `type` with `sharding` instead of what it carries; null takes it away.
mlir::RankedTensorType withSharding(mlir::RankedTensorType type, ShardingAttr sharding);

/// Bytes of all of a tensor, wherever it lies; of what one rank holds for a local type.
/// REQUIRES: every size is known.
int64_t countBytes(mlir::RankedTensorType type);

/// What one rank holds of a value of `type`, without a sharding.
mlir::RankedTensorType getLocalType(mlir::RankedTensorType type);

/// `axes` in the order of `mesh`.
mlir::ArrayAttr sortByMesh(MeshAttr mesh, llvm::ArrayRef<mlir::Attribute> axes);

/// `axes` and `more`, joined, without repetition.
mlir::ArrayAttr joinAxes(mlir::ArrayAttr axes, mlir::ArrayAttr more);

/// `axes` and then `more`, which holds none of them.
mlir::ArrayAttr appendAxes(mlir::ArrayAttr axes, mlir::ArrayAttr more);

/// Whether `axes` ends in `suffix`.
bool endsWith(mlir::ArrayAttr axes, mlir::ArrayAttr suffix);

/// `axes` without its last `count`.
mlir::ArrayAttr dropBack(mlir::ArrayAttr axes, size_t count);

/// `sharding` with the axes of dimension `dim` replaced.
ShardingAttr withDim(ShardingAttr sharding, int64_t dim, mlir::ArrayAttr axes);

/// `sharding` with other unreduced axes (put into mesh order).
ShardingAttr withUnreduced(ShardingAttr sharding, llvm::ArrayRef<mlir::Attribute> axes,
                           ReductionKind reduction);

} // namespace weft

#endif // WEFT_DIALECT_WEFT_IR_SHARDING_H
