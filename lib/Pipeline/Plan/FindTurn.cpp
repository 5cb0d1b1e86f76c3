//===- FindTurn.cpp - the instant when values take most memory ------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ShardingProblem.h"

using namespace mlir;

namespace weft {

static double bytesOf(Value value) {
  auto tensor = dyn_cast<RankedTensorType>(value.getType());
  if (!tensor || isa_and_nonnull<ReadOp>(value.getDefiningOp())) {
    return 0;
  }
  return wholeBytes(tensor);
}

Operation *findTurn(func::FuncOp function) {
  Block &block = function.getBody().front();
  DenseMap<Operation *, double> dying; // Bytes whose last user it is.
  for (Operation &op : block) {
    for (Value result : op.getResults()) {
      Operation *last = nullptr;
      for (Operation *user : result.getUsers()) {
        last = last && user->isBeforeInBlock(last) ? last : user;
      }
      if (last) {
        dying[last] += bytesOf(result);
      }
    }
  }
  Operation *turn = nullptr;
  double live = 0, most = -1;
  for (Operation &op : block) {
    for (Value result : op.getResults()) {
      live += result.use_empty() ? 0 : bytesOf(result);
    }
    live -= dying.lookup(&op);
    if (live > most) {
      most = live;
      turn = &op;
    }
  }
  return turn;
}

} // namespace weft
