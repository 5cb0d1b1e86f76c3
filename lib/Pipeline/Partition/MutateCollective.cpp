//===- MutateCollective.cpp - plants a mistake, to test the tests -------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Dialect/Weft/IR/MapBuilders.h"
#include "weft/Pipeline/Partition/Passes.h"

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_MUTATECOLLECTIVEPASS
#include "weft/Pipeline/Partition/Passes.h.inc"

namespace {

struct MutateCollectivePass : impl::MutateCollectivePassBase<MutateCollectivePass> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<AllReduceOp> reductions;
    getOperation().walk([&](AllReduceOp op) { reductions.push_back(op); });
    if (index < 0 || index >= static_cast<int64_t>(reductions.size())) {
      getOperation().emitError("mutate-collective: no collective number ")
          << static_cast<int64_t>(index) << ", there are " << reductions.size();
      return signalPassFailure();
    }
    AllReduceOp op = reductions[index];
    if (kind == "drop") {
      op.replaceAllUsesWith(op.getInput());
      op.erase();
    } else if (kind == "double") {
      replaceWith(op, [&](OpBuilder &builder) -> Value {
        return AllReduceOp::create(builder, op.getLoc(), op.getOutput().getType(), op.getOutput(),
                                   op.getMesh(), op.getAxes(), op.getReduction());
      });
    } else if (kind == "scale") {
      replaceWith(op, [&](OpBuilder &builder) { return halve(builder, op); });
    } else {
      op.emitError("mutate-collective: expected drop, double or scale, got '") << kind << "'";
      return signalPassFailure();
    }
  }

  /// Puts what `build` makes of the op's result in its place.
  static void replaceWith(AllReduceOp op, llvm::function_ref<Value(OpBuilder &)> build) {
    OpBuilder builder(op->getContext());
    builder.setInsertionPointAfter(op);
    Value changed = build(builder);
    op.getOutput().replaceAllUsesExcept(changed, changed.getDefiningOp());
  }

  static Value halve(OpBuilder &builder, AllReduceOp op) {
    auto body = [](OpBuilder &inner, Location at, ValueRange in) {
      Value half = arith::ConstantOp::create(inner, at, inner.getFloatAttr(in[0].getType(), 0.5));
      return SmallVector<Value>{arith::MulFOp::create(inner, at, in[0], half)};
    };
    Type type = op.getOutput().getType();
    return createMap(builder, op.getLoc(), type, op.getOutput(), body).getResult(0);
  }
};

} // namespace
} // namespace weft
