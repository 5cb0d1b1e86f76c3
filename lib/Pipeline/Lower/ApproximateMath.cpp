//===- ApproximateMath.cpp - float32 functions as arithmetic that vectorizes -===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "weft/Pipeline/Lower/Passes.h"

namespace weft {

#define GEN_PASS_DEF_APPROXIMATEMATHPASS
#include "weft/Pipeline/Lower/Passes.h.inc"

using namespace mlir;

namespace {

/// Without an instruction for it, a fused multiply-add is a call. Two operations that may be
/// contracted become that instruction where there is one.
struct SplitFma : OpRewritePattern<math::FmaOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::FmaOp op, PatternRewriter &rewriter) const override {
    constexpr auto fused = arith::FastMathFlags::contract;
    Value product = arith::MulFOp::create(rewriter, op.getLoc(), op.getA(), op.getB(), fused);
    rewriter.replaceOpWithNewOp<arith::AddFOp>(op, product, op.getC(), fused);
    return success();
  }
};

struct ApproximateMathPass : impl::ApproximateMathPassBase<ApproximateMathPass> {
  using ApproximateMathPassBase::ApproximateMathPassBase;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<SplitFma>(&getContext());
    auto isApproximated = [](StringRef name) {
      return llvm::is_contained({"math.exp", "math.log", "math.tanh", "math.erf"}, name);
    };
    populateMathPolynomialApproximationPatterns(patterns, isApproximated);
    SmallVector<Operation *> chosen;
    getOperation().walk([&](Operation *op) {
      if (op->getNumResults() == 1 && isApproximated(op->getName().getStringRef()) &&
          (!forDevices || isa<VectorType>(op->getResult(0).getType()))) {
        chosen.push_back(op);
      }
    });
    auto config = GreedyRewriteConfig().setStrictness(GreedyRewriteStrictness::ExistingAndNewOps);
    LogicalResult done = forDevices ? applyOpPatternsGreedily(chosen, std::move(patterns), config)
                                    : applyPatternsGreedily(getOperation(), std::move(patterns));
    if (failed(done)) {
      signalPassFailure();
    }
  }
};

} // namespace

} // namespace weft
