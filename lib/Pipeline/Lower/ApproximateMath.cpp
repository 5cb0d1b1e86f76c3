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

#include <numbers>

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

/// The hyperbolic tangent without the toolkit's branch, around which loads and stores of neighbors
/// do not become one. With e = exp(-2|x|), it is (1 - e) / (1 + e), to three units of the last
/// place from 1/4 on; below that, the terms up to x^9 of its series are as near.
struct ExpandTanh : OpRewritePattern<math::TanhOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::TanhOp op, PatternRewriter &rewriter) const override {
    Type type = op.getType();
    if (!type.isF32()) {
      return failure();
    }
    Location loc = op.getLoc();
    auto real = [&](double number) -> Value {
      return arith::ConstantOp::create(rewriter, loc, rewriter.getFloatAttr(type, number));
    };
    auto multiply = [&](Value a, Value b) -> Value {
      return arith::MulFOp::create(rewriter, loc, a, b, arith::FastMathFlags::contract);
    };
    auto add = [&](Value a, Value b) -> Value {
      return arith::AddFOp::create(rewriter, loc, a, b, arith::FastMathFlags::contract);
    };
    Value x = op.getOperand(), size = math::AbsFOp::create(rewriter, loc, x), one = real(1);
    Value e = math::Exp2Op::create(rewriter, loc, multiply(size, real(-2 * std::numbers::log2e)));
    Value far = arith::DivFOp::create(rewriter, loc, arith::SubFOp::create(rewriter, loc, one, e),
                                      add(one, e), arith::FastMathFlags::afn);
    far = math::CopySignOp::create(rewriter, loc, far, x);
    Value square = multiply(x, x), sum = real(62.0 / 2835);
    for (double term : {-17.0 / 315, 2.0 / 15, -1.0 / 3}) {
      sum = add(multiply(sum, square), real(term));
    }
    Value near = add(multiply(multiply(sum, square), x), x);
    Value isNear =
        arith::CmpFOp::create(rewriter, loc, arith::CmpFPredicate::OLT, size, real(0.25));
    rewriter.replaceOpWithNewOp<arith::SelectOp>(op, isNear, near, far);
    return success();
  }
};

struct ApproximateMathPass : impl::ApproximateMathPassBase<ApproximateMathPass> {
  using ApproximateMathPassBase::ApproximateMathPassBase;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<SplitFma>(&getContext());
    if (forDevices) {
      patterns.add<ExpandTanh>(&getContext(), /*benefit=*/2);
    }
    auto isApproximated = [](StringRef name) {
      return llvm::is_contained({"math.exp", "math.log", "math.tanh", "math.erf"}, name);
    };
    populateMathPolynomialApproximationPatterns(patterns, isApproximated);
    SmallVector<Operation *> chosen;
    getOperation().walk([&](Operation *op) {
      if (op->getNumResults() == 1 && isApproximated(op->getName().getStringRef()) &&
          (!forDevices || isa<math::TanhOp>(op) || isa<VectorType>(op->getResult(0).getType()))) {
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
