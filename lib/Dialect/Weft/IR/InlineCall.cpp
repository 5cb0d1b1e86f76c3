//===- InlineCall.cpp - a call replaced by what it calls -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Dialect/Weft/IR/InlineCall.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace weft;

SmallVector<Operation *> weft::inlineCall(CallOp call, func::FuncOp callee) {
  Block &body = callee.getBody().front();
  OpBuilder builder(call);
  IRMapping copies;
  copies.map(body.getArguments(), call.getOperands());
  SmallVector<Operation *> ops;
  for (Operation &op : body.without_terminator()) {
    ops.push_back(builder.clone(op, copies));
  }
  for (auto [result, value] :
       llvm::zip_equal(call.getResults(), body.getTerminator()->getOperands())) {
    result.replaceAllUsesWith(copies.lookup(value));
  }
  call.erase();
  return ops;
}
