//===- LowerMovement.cpp - shards of tensors, and counting ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Models.h"

namespace weft::lower {

using namespace mlir;

namespace {

struct LowerSlice : HostModel<LowerSlice, SliceOp> {
  static void lower(Code &code, SliceOp op, SliceOp::Adaptor operands, ValueRange results) {
    Buffer whole = code.buffer(operands.getInput()), shard = code.buffer(results[0]);
    int64_t dim = op.getDim(), length = shard.getSize(dim);
    int64_t outer = 1;
    for (int64_t size : shard.getShape().take_front(dim)) {
      outer *= size;
    }
    int64_t inner = shard.getElementCount() / (outer * length);
    Buffer from = whole.view({outer, whole.getSize(dim), inner});
    Buffer to = shard.view({outer, length, inner});
    Num start = code.num(operands.getIndex()) * length;
    if (code.isForDevice()) { // In one loop, so that neighbors are as many as there can be.
      from = whole.view({outer, whole.getSize(dim) * inner});
      to = shard.view({outer, length * inner});
      start = start * inner;
      code.elements({outer, length * inner}, [&](ArrayRef<Num> at) {
        to.storeStored(from.loadStored({at[0], start + at[1]}), at);
      });
      return;
    }
    code.parallelNest({outer, length, inner}, [&](ArrayRef<Num> at) {
      to.storeStored(from.loadStored({at[0], start + at[1], at[2]}), at);
    });
  }
};

struct LowerPartial : HostModel<LowerPartial, PartialOp> {
  static void lower(Code &code, PartialOp, PartialOp::Adaptor operands, ValueRange results) {
    Buffer input = code.buffer(operands.getInput()), output = code.buffer(results[0]);
    Num isFirst = code.num(operands.getIndex()) == int64_t(0);
    if (code.isForDevice()) {
      Buffer from = input.flat(), to = output.flat();
      Num zero = code.real(from.getStoredType(), 0);
      code.elements(from.getShape(), [&](ArrayRef<Num> at) {
        to.storeStored(code.select(isFirst, from.loadStored(at), zero), at);
      });
      return;
    }
    code.when(isFirst, [&] { code.copy(input, output); }, [&] { code.fill(output, 0); });
  }

  bool mayReuse(Operation *, unsigned operand, unsigned) const { return operand == 0; }
};

struct LowerIota : HostModel<LowerIota, IotaOp> {
  static void lower(Code &code, IotaOp, IotaOp::Adaptor operands, ValueRange results) {
    Buffer output = code.buffer(results[0]);
    auto count = [&](Num i) {
      Num value = operands.getOffset() ? i + code.num(operands.getOffset()) : i;
      output.store(code.toInt32(value), i);
    };
    if (code.isForDevice()) {
      code.elements(output.getShape(), [&](ArrayRef<Num> at) { count(at.front()); });
    } else {
      code.loop(0, output.getElementCount(), count);
    }
  }
};

} // namespace

void attachMovementModels(MLIRContext &context) {
  SliceOp::attachInterface<LowerSlice>(context);
  PartialOp::attachInterface<LowerPartial>(context);
  IotaOp::attachInterface<LowerIota>(context);
}

} // namespace weft::lower
