//===- ExpandBF16.cpp - bf16 conversions as integer arithmetic -----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "weft/Pipeline/Lower/Passes.h"

namespace weft {

#define GEN_PASS_DEF_EXPANDBF16PASS
#include "weft/Pipeline/Lower/Passes.h.inc"

using namespace mlir;

namespace {

struct ExpandBF16Pass : impl::ExpandBF16PassBase<ExpandBF16Pass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    arith::populateExpandBFloat16Patterns(patterns);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns)))) {
      signalPassFailure();
    }
  }
};

} // namespace

} // namespace weft
