//===- CallLinks.h - values that calls pass --------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PIPELINE_CALLLINKS_H
#define WEFT_PIPELINE_CALLLINKS_H

#include "weft/Dialect/Weft/IR/Weft.h"

#include <utility>

namespace weft {

/// Follows values through calls, one call after the other.
class CallLinks {
public:
  /// Calls `join(outside, inside)` for each operand and its argument, and for each result and what
  /// is returned; not for operands that the last call of the function passed, too: calls for one
  /// micro-batch after the other read the same weights. An external callee links nothing.
  template <typename Join> void follow(CallOp call, mlir::func::FuncOp callee, const Join &join) {
    if (callee.isExternal()) {
      return;
    }
    CallOp before = std::exchange(lastCalls[callee], call);
    for (auto [number, argument] : llvm::enumerate(callee.getArguments())) {
      if (!before || before->getOperand(number) != call->getOperand(number)) {
        join(call->getOperand(number), argument);
      }
    }
    mlir::Operation *done = callee.getBody().front().getTerminator();
    for (auto [result, returned] : llvm::zip(call->getResults(), done->getOperands())) {
      join(result, returned);
    }
  }

private:
  /// The last call of each function that was met.
  llvm::DenseMap<mlir::Operation *, CallOp> lastCalls;
};

} // namespace weft

#endif // WEFT_PIPELINE_CALLLINKS_H
