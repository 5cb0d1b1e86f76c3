//===- Position.h - the place of a shard in the whole tensor --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DIALECT_WEFT_IR_POSITION_H
#define WEFT_DIALECT_WEFT_IR_POSITION_H

#include "mlir/IR/Operation.h"
#include "mlir/IR/ValueRange.h"

namespace weft {
class ZigzagAttr;

/// The position of a shard in the whole tensor: the offset of each position factor, of type
/// `index`, and the factor's size in the whole, empty for ops that need none. Both are empty for
/// the whole.
struct Position {
  mlir::ValueRange offsets;
  llvm::ArrayRef<int64_t> globalSizes;
};

/// Returns true if `order` fits a whole of `unpadded` positions, of which an op has `stored`: all,
/// with their padding (`isWhole`), or a shard, which does not know the length of the padding.
bool isOrderOf(ZigzagAttr order, int64_t stored, bool isWhole, int64_t unpadded);
/// Checks that `offsets` and `globalSizes` are as PositionOpInterface::setPosition sets them: one
/// for each position factor; neither if the op works on the whole; sizes alone if the whole is
/// padded.
mlir::LogicalResult verifyPosition(mlir::Operation *op, mlir::ValueRange offsets,
                                   std::optional<llvm::ArrayRef<int64_t>> globalSizes);
/// Checks that `columns`, if given, is one number from 1 to `most`: the elements of a row without
/// its padding.
mlir::LogicalResult verifyUnpaddedColumns(mlir::Operation *op,
                                          std::optional<llvm::ArrayRef<int64_t>> columns,
                                          int64_t most);

} // namespace weft

#endif // WEFT_DIALECT_WEFT_IR_POSITION_H
