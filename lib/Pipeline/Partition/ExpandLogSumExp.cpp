//===- ExpandLogSumExp.cpp - a reduction that no library has ------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Dialect/Weft/IR/MapBuilders.h"
#include "weft/Pipeline/Partition/Passes.h"

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_EXPANDLOGSUMEXPPASS
#include "weft/Pipeline/Partition/Passes.h.inc"

namespace {

Value expand(AllReduceOp op) {
  OpBuilder builder(op);
  Location loc = op.getLoc();
  Type type = op.getOutput().getType();
  auto reduce = [&](Value value, ReductionKind kind) -> Value {
    return AllReduceOp::create(builder, loc, type, value, op.getMesh(), op.getAxes(), kind);
  };
  Value greatest = reduce(op.getInput(), ReductionKind::Max);
  Value terms = createMap(builder, loc, type, {op.getInput(), greatest},
                          [](OpBuilder &inner, Location at, ValueRange in) {
                            Value distance = arith::SubFOp::create(inner, at, in[0], in[1]);
                            return SmallVector<Value>{math::ExpOp::create(inner, at, distance)};
                          })
                    .getResult(0);
  Value sum = reduce(terms, ReductionKind::Sum);
  return createMap(builder, loc, type, {greatest, sum},
                   [](OpBuilder &inner, Location at, ValueRange in) {
                     Value logarithm = math::LogOp::create(inner, at, in[1]);
                     return SmallVector<Value>{arith::AddFOp::create(inner, at, in[0], logarithm)};
                   })
      .getResult(0);
}

struct ExpandLogSumExpPass : impl::ExpandLogSumExpPassBase<ExpandLogSumExpPass> {
  void runOnOperation() override {
    getOperation().walk([](AllReduceOp op) {
      if (op.getReduction() == ReductionKind::LogSumExp) {
        op.replaceAllUsesWith(expand(op));
        op.erase();
      }
    });
  }
};

} // namespace
} // namespace weft
