//===- InlineCall.h - a call replaced by what it calls ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DIALECT_WEFT_IR_INLINECALL_H
#define WEFT_DIALECT_WEFT_IR_INLINECALL_H

#include "weft/Dialect/Weft/IR/Weft.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace weft {

/// Replaces `call` by copies of the ops of `callee`, the function that it calls, which has one
/// block and stays. Returns the copies, in order.
llvm::SmallVector<mlir::Operation *> inlineCall(CallOp call, mlir::func::FuncOp callee);

} // namespace weft

#endif // WEFT_DIALECT_WEFT_IR_INLINECALL_H
