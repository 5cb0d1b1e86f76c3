//===- PaddingMask.h - a value that is zero in its padding ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DIALECT_WEFT_IR_PADDINGMASK_H
#define WEFT_DIALECT_WEFT_IR_PADDINGMASK_H

#include "weft/Dialect/Weft/IR/Weft.h"

namespace weft {

/// Builds a map that sets `value` to zero from element `end` of dimension `dim` on.
/// REQUIRES: `value` is a tensor of floats without a sharding.
MapOp createPaddingMask(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value,
                        int64_t dim, int64_t end);

/// Returns true if `op` is a map as createPaddingMask builds it, which changes only the padding of
/// its first operand.
bool isPaddingMask(mlir::Operation *op);

} // namespace weft

#endif // WEFT_DIALECT_WEFT_IR_PADDINGMASK_H
