//===- Position.cpp - the place of a shard in the whole tensor ------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Dialect/Weft/IR/Position.h"

#include "weft/Dialect/Weft/IR/Weft.h"

using namespace mlir;

namespace weft {

bool isOrderOf(ZigzagAttr order, int64_t stored, bool isWhole, int64_t unpadded) {
  return isWhole ? order.getSize() == stored : order.getSize() >= unpadded;
}

LogicalResult verifyPosition(Operation *op, ValueRange offsets,
                             std::optional<ArrayRef<int64_t>> globalSizes) {
  size_t given = globalSizes ? globalSizes->size() : 0;
  if (offsets.empty() && !globalSizes) {
    return success();
  }
  size_t factors = cast<PositionOpInterface>(op).getPositionFactors().size();
  bool hasOffsets = offsets.empty() || offsets.size() == factors;
  if (factors == 0 || !hasOffsets || given != factors) {
    return op->emitOpError() << "has " << offsets.size() << " offsets and " << given
                             << " sizes of the whole, expected none or " << factors << " of each";
  }
  return success();
}

LogicalResult verifyUnpaddedColumns(Operation *op, std::optional<ArrayRef<int64_t>> columns,
                                    int64_t most) {
  if (!columns || (columns->size() == 1 && columns->front() >= 1 && columns->front() <= most)) {
    return success();
  }
  InFlightDiagnostic error = op->emitOpError("expected one number of columns, from 1 to ");
  error << most << ", got [";
  llvm::interleaveComma(*columns, error);
  return error << "]";
}

} // namespace weft
