//===- LowerOrder.cpp - positions stored in another order -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Models.h"
#include "Order.h"

namespace weft::lower {

using namespace mlir;

/// Stored chunk 2i is chunk i of the sequence; stored chunk 2i + 1 is the i-th from the end.
Num positionAt(Code &code, ZigzagAttr order, Num stored) {
  Num chunk = stored / order.getLength(), half = chunk / 2;
  Num fromEnd = code.index(order.getChunks() - 1) - half;
  Num moved = code.select(half * 2 == chunk, half, fromEnd);
  return stored + (moved - chunk) * order.getLength();
}

Num indexOf(Code &code, ZigzagAttr order, Num position) {
  Num chunk = position / order.getLength();
  Num fromEnd = code.index(order.getChunks() - 1) - chunk;
  Num moved = code.select(chunk < fromEnd, chunk * 2, fromEnd * 2 + 1);
  return position + (moved - chunk) * order.getLength();
}

namespace {

struct LowerReorder : HostModel<LowerReorder, ReorderOp> {
  static void lower(Code &code, ReorderOp op, ReorderOp::Adaptor operands, ValueRange results) {
    Buffer whole = code.buffer(operands.getInput()), shard = code.buffer(results[0]);
    auto dim = static_cast<int64_t>(op.getDim());
    int64_t length = shard.getSize(dim), outer = 1;
    for (int64_t size : shard.getShape().take_front(dim)) {
      outer *= size;
    }
    int64_t inner = shard.getElementCount() / (outer * length);
    Buffer from = whole.view({outer, whole.getSize(dim), inner});
    Buffer to = shard.view({outer, length, inner});
    code.parallelNest({outer, length, inner}, [&](ArrayRef<Num> at) {
      Num index = operands.getOffset() ? at[1] + code.num(operands.getOffset()) : at[1];
      Num source = op.getInverse() ? indexOf(code, op.getOrder(), index)
                                   : positionAt(code, op.getOrder(), index);
      to.store(from(at[0], source, at[2]), at);
    });
  }
};

} // namespace

void attachOrderModels(MLIRContext &context) { ReorderOp::attachInterface<LowerReorder>(context); }

} // namespace weft::lower
