//===- NarrowReductions.cpp - sums of bf16 between ranks -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Dialect/Weft/IR/MapBuilders.h"
#include "weft/Pipeline/Partition/Passes.h"

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_NARROWREDUCTIONSPASS
#include "weft/Pipeline/Partition/Passes.h.inc"

namespace {

template <typename OpTy> bool isWideSum(OpTy op) {
  auto type = cast<RankedTensorType>(op.getInput().getType());
  return op.getReduction() == ReductionKind::Sum && type.getRank() != 0 &&
         type.getElementType().isF32();
}

/// Narrows `op`, an all-reduce or a reduce-scatter, with one operand and one result.
void narrow(Operation *op) {
  OpBuilder builder(op);
  Value result = op->getResult(0);
  auto type = cast<RankedTensorType>(result.getType());
  Type bf16 = builder.getBF16Type();
  op->setOperand(0, createCast(builder, op->getLoc(), op->getOperand(0), bf16));
  result.setType(type.clone(bf16));
  builder.setInsertionPointAfter(op);
  Value widened = createCast(builder, op->getLoc(), result, type.getElementType());
  result.replaceAllUsesExcept(widened, widened.getDefiningOp());
}

struct NarrowReductionsPass : impl::NarrowReductionsPassBase<NarrowReductionsPass> {
  void runOnOperation() override {
    SmallVector<Operation *> sums;
    getOperation().walk([&](AllReduceOp op) { isWideSum(op) ? sums.push_back(op) : void(); });
    getOperation().walk([&](ReduceScatterOp op) { isWideSum(op) ? sums.push_back(op) : void(); });
    llvm::for_each(sums, narrow);
    narrowed += sums.size();
  }
};

} // namespace
} // namespace weft
