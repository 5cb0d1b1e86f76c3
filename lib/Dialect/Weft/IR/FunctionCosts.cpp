//===- FunctionCosts.cpp - what functions cost, with what they call --------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Dialect/Weft/IR/FunctionCosts.h"

#include "weft/Dialect/Weft/IR/Weft.h"

using namespace mlir;

namespace weft {

double FunctionCosts::of(func::FuncOp function) {
  if (auto found = known.find(function); found != known.end()) {
    return found->second;
  }
  double sum = 0;
  for (Operation &op : function.getOps()) {
    sum += of(&op);
  }
  known[function] = sum;
  return sum;
}

double FunctionCosts::of(Operation *op) {
  auto call = dyn_cast<CallOp>(op);
  return call ? of(symbols.lookup<func::FuncOp>(call.getCallee())) : ofOp(op);
}

} // namespace weft
