//===- ExpandBF16.cpp - bf16 conversions as integer arithmetic -----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "weft/Pipeline/Lower/Passes.h"

namespace weft {

#define GEN_PASS_DEF_EXPANDBF16PASS
#include "weft/Pipeline/Lower/Passes.h.inc"

using namespace mlir;

namespace {

/// Rounds one number by a function of devices.
void roundByCalls(ModuleOp module) {
  SmallVector<arith::TruncFOp> roundings;
  module.walk([&](arith::TruncFOp op) {
    if (op.getType().isBF16() && op.getIn().getType().isF32()) {
      roundings.push_back(op);
    }
  });
  if (roundings.empty()) {
    return;
  }
  OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
  Type f32 = builder.getF32Type(), bits = builder.getI16Type();
  auto round = func::FuncOp::create(builder, module.getLoc(), "weft_device_round",
                                    builder.getFunctionType({f32}, {bits}));
  round.setPrivate();
  for (arith::TruncFOp op : roundings) {
    builder.setInsertionPoint(op);
    Value rounded = func::CallOp::create(builder, op.getLoc(), round, op.getIn()).getResult(0);
    rounded = arith::BitcastOp::create(builder, op.getLoc(), op.getType(), rounded);
    op.replaceAllUsesWith(rounded);
    op.erase();
  }
}

/// Chooses between the bits of two numbers. Without an instruction for bf16, LLVM would widen both
/// numbers and round the chosen one by a call.
struct SelectBits : OpRewritePattern<arith::SelectOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::SelectOp op, PatternRewriter &rewriter) const override {
    Type type = op.getType(), bits = rewriter.getI16Type();
    if (!getElementTypeOrSelf(type).isBF16()) {
      return failure();
    }
    if (auto vector = dyn_cast<VectorType>(type)) {
      bits = vector.clone(bits);
    }
    Value a = arith::BitcastOp::create(rewriter, op.getLoc(), bits, op.getTrueValue());
    Value b = arith::BitcastOp::create(rewriter, op.getLoc(), bits, op.getFalseValue());
    Value chosen = arith::SelectOp::create(rewriter, op.getLoc(), op.getCondition(), a, b);
    rewriter.replaceOpWithNewOp<arith::BitcastOp>(op, type, chosen);
    return success();
  }
};

struct ExpandBF16Pass : impl::ExpandBF16PassBase<ExpandBF16Pass> {
  using ExpandBF16PassBase::ExpandBF16PassBase;

  void runOnOperation() override {
    if (forDevices) {
      roundByCalls(getOperation());
    }
    RewritePatternSet patterns(&getContext());
    arith::populateExpandBFloat16Patterns(patterns);
    patterns.add<SelectBits>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns)))) {
      signalPassFailure();
    }
  }
};

} // namespace

} // namespace weft
