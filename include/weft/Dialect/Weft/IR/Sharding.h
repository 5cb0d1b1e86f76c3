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
// A dimension may be too small for an axis, such as two key heads for eight ranks of "tp". The axis
// is then split into sub-axes: <"tp"=2x4> has the same ranks in the same order. A dimension that
// all eight ranks cut has {"tp"}; the heads have {"tp:(1)2"} and are replicated over "tp:(2)4", or
// another dimension has {"tp:(2)4"}. To every algorithm, "tp:(1)2" and "tp:(2)4" are two axes, the
// parts of "tp" (weft/Mesh/MeshParts.h); only texts join them. desc::fitPins and
// desc::splitForHeads split axes.
//
// The third state of an axis is unreduced, also called pending. With `unreduced = sum{"tp"}`, each
// rank holds one term, and the value is the sum of the terms over tp. The result of a matmul whose
// summed dimension is cut is unreduced. Nothing was communicated yet, and often that is never
// necessary: the sum of two unreduced sums is an unreduced sum, and so is one times a scale. But
// exp(a + b) is not exp(a) + exp(b), and (a + b)(c + d) is not ac + bd: there a `weft.reshard` has
// to reduce the value first. Each op says which operands may be unreduced
// (ShardableOpInterface::isAdditiveIn).
//
// An axis has one state at a time: it cuts one dimension, or is unreduced, or replicates. A sharded
// tensor has the shape of the whole, and its type carries the sharding as its encoding;
// `getLocalType` returns the type of one rank's shard.
//
// Unreduced axes are listed in the order of the mesh, so that equal shardings are equal attributes.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DIALECT_WEFT_IR_SHARDING_H
#define WEFT_DIALECT_WEFT_IR_SHARDING_H

#include "weft/Dialect/Weft/IR/Weft.h"

namespace weft {

/// Returns the sharding that a type carries, or null.
ShardingAttr getSharding(mlir::Type type);

/// Returns `type` with its encoding replaced by `sharding`; null removes it.
mlir::RankedTensorType withSharding(mlir::RankedTensorType type, ShardingAttr sharding);

/// Returns the bytes of a whole tensor, over all ranks; of one rank's shard for a local type.
/// REQUIRES: every size is known.
int64_t countBytes(mlir::RankedTensorType type);

/// Returns the type of one rank's shard of a value of `type`, without a sharding.
mlir::RankedTensorType getLocalType(mlir::RankedTensorType type);

/// Returns `axes` in the order of `mesh`.
mlir::ArrayAttr sortByMesh(MeshAttr mesh, llvm::ArrayRef<mlir::Attribute> axes);

/// Returns the union of `axes` and `more`.
mlir::ArrayAttr joinAxes(mlir::ArrayAttr axes, mlir::ArrayAttr more);

/// Returns `axes` followed by `more`. REQUIRES: they have no axis in common.
mlir::ArrayAttr appendAxes(mlir::ArrayAttr axes, mlir::ArrayAttr more);

/// Returns true if `axes` ends in `suffix`.
bool endsWith(mlir::ArrayAttr axes, mlir::ArrayAttr suffix);

/// Returns `axes` without the last `count`.
mlir::ArrayAttr dropBack(mlir::ArrayAttr axes, size_t count);

/// Returns `sharding` with the axes of dimension `dim` replaced.
ShardingAttr withDim(ShardingAttr sharding, int64_t dim, mlir::ArrayAttr axes);

/// Returns `sharding` with other unreduced axes, sorted by the mesh.
ShardingAttr withUnreduced(ShardingAttr sharding, llvm::ArrayRef<mlir::Attribute> axes,
                           ReductionKind reduction);

/// Parses and prints `["dp", "tp"] of #mesh` in the assembly of ops; for GroupAxes in their
/// definitions. The text may join the parts of an axis.
mlir::ParseResult parseGroupAxes(mlir::OpAsmParser &parser, mlir::ArrayAttr &axes, MeshAttr &mesh);
void printGroupAxes(mlir::OpAsmPrinter &printer, mlir::Operation *op, mlir::ArrayAttr axes,
                    MeshAttr mesh);

} // namespace weft

#endif // WEFT_DIALECT_WEFT_IR_SHARDING_H
