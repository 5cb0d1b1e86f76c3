//===- FuseCollectives.cpp - reduce-scatter from all-reduce and slice ---===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Dialect/Weft/IR/Sharding.h"
#include "weft/Pipeline/Partition/Passes.h"

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_FUSECOLLECTIVESPASS
#include "weft/Pipeline/Partition/Passes.h.inc"

namespace {

struct FuseCollectivesPass : impl::FuseCollectivesPassBase<FuseCollectivesPass> {
  void runOnOperation() override {
    getOperation().walk([&](SliceOp slice) {
      auto reduce = slice.getInput().getDefiningOp<AllReduceOp>();
      // Libraries scatter sums and maxima; a log-sum-exp is none of these.
      if (!reduce || !reduce->hasOneUse() || reduce.getAxes() != slice.getAxes() ||
          reduce.getReduction() == ReductionKind::LogSumExp) {
        return;
      }
      OpBuilder builder(slice);
      Value scattered = ReduceScatterOp::create(
          builder, slice.getLoc(), slice.getOutput().getType(), reduce.getInput(),
          slice.getMesh(), slice.getAxes(), slice.getDim(), reduce.getReduction());
      slice.replaceAllUsesWith(scattered);
      slice.erase();
      reduce.erase();
      ++numFused;
    });
  }
};

} // namespace
} // namespace weft
