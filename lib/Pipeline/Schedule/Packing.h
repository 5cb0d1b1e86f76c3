//===- Packing.h - shares of collectives as rows --------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A rank's share of a tensor is scattered in memory, unless the tensor is cut along the outermost
// dimension that is longer than one. Packed, shares are rows, in the order of ranks.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_SCHEDULE_PACKING_H
#define WEFT_LIB_PIPELINE_SCHEDULE_PACKING_H

#include "weft/Dialect/Weft/IR/Weft.h"

namespace weft {

/// How one side of a collective, its operand or result, is cut: into `count` shares along `dim` of
/// `type`. `count` is 1 if every rank sends, or receives, all of it.
struct Shares {
  mlir::RankedTensorType type;
  int64_t dim = 0, count = 1;

  /// Returns the elements of a share.
  int64_t elements() const { return type.getNumElements() / count; }
  /// Returns how many elements of a share are contiguous.
  int64_t together() const;
  /// Returns true if a share as a whole is not contiguous.
  bool areScattered() const { return together() < elements(); }

  /// Returns `value`, of type `type`, as [count, elements of a share]. Inserts ops at `builder`.
  mlir::Value pack(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value) const;
  /// The inverse: returns a value of `type` with the elements of `packed`, whatever its shape.
  mlir::Value unpack(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value packed) const;
};

/// Returns the same elements in the same order with `shape`, which has as many.
mlir::Value reshapeTo(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value,
                      llvm::ArrayRef<int64_t> shape);

} // namespace weft

#endif // WEFT_LIB_PIPELINE_SCHEDULE_PACKING_H
