//===- Packing.h - shares of collectives as rows --------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A rank's share of a tensor lies scattered in memory, unless it is cut along the outermost
// dimension that is longer than one. Packed, shares are rows, in the order of ranks.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_SCHEDULE_PACKING_H
#define WEFT_LIB_PIPELINE_SCHEDULE_PACKING_H

#include "weft/Dialect/Weft/IR/Weft.h"

namespace weft {

/// How one side of a collective, operand or result, is cut: `count` shares along `dim` of `type`;
/// one where all of it goes to, or comes from, every rank.
struct Shares {
  mlir::RankedTensorType type;
  int64_t dim = 0, count = 1;

  /// Elements of a share.
  int64_t elements() const { return type.getNumElements() / count; }
  /// Those of them that lie together.
  int64_t together() const;
  /// Whether a share does not lie together as a whole.
  bool areScattered() const { return together() < elements(); }

  /// `value`, which is of `type`, as [count, elements of a share]. New ops stand at `builder`.
  mlir::Value pack(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value) const;
  /// Its inverse: of `packed` with as many elements, whatever its shape, a value of `type`.
  mlir::Value unpack(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value packed) const;
};

/// The same elements in the same order; `shape` has as many.
mlir::Value reshapeTo(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value,
                      llvm::ArrayRef<int64_t> shape);

} // namespace weft

#endif // WEFT_LIB_PIPELINE_SCHEDULE_PACKING_H
