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

/// `value` with zeros from element `end` of dimension `dim` on.
/// REQUIRES: `value` is a tensor of floats without a sharding.
MapOp createPaddingMask(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value,
                        int64_t dim, int64_t end);

/// Whether `op` does what createPaddingMask makes: it changes the padding of its first operand and
/// nothing else.
bool isPaddingMask(mlir::Operation *op);

} // namespace weft

#endif // WEFT_DIALECT_WEFT_IR_PADDINGMASK_H
