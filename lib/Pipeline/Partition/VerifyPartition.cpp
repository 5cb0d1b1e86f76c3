//===- VerifyPartition.cpp - checks the result of Partition -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Dialect/Weft/IR/Sharding.h"
#include "weft/Pipeline/Partition/Passes.h"

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_VERIFYPARTITIONPASS
#include "weft/Pipeline/Partition/Passes.h.inc"

namespace {

struct VerifyPartitionPass : impl::VerifyPartitionPassBase<VerifyPartitionPass> {
  void runOnOperation() override {
    WalkResult walk = getOperation().walk([](Operation *op) { return WalkResult(check(op)); });
    if (walk.wasInterrupted()) {
      return signalPassFailure();
    }
    markAllAnalysesPreserved();
  }

  static LogicalResult check(Operation *op) {
    if (isa<ReshardOp, ConstrainOp>(op)) {
      return op->emitError("verify-partition: a ")
             << op->getName().stripDialect()
             << " is left, expected reshard-to-collectives to replace it";
    }
    if (auto permuted = dyn_cast<PermutationOpInterface>(op);
        permuted && permuted.getPermutedAxes()) {
      return op->emitError("verify-partition: an op over the shards of several ranks is left, "
                           "expected expand-permutations to replace it");
    }
    SmallVector<Type> types(op->getResultTypes());
    for (Region &region : op->getRegions()) {
      llvm::append_range(types, region.getArgumentTypes());
    }
    for (Type type : types) {
      auto tensor = dyn_cast<RankedTensorType>(type);
      if (tensor && tensor.getEncoding()) {
        return op->emitError("verify-partition: ")
               << tensor << " still has an encoding, expected localize to remove it";
      }
    }
    auto reduction = ReductionKind::Sum;
    if (auto reduce = dyn_cast<AllReduceOp>(op)) {
      reduction = reduce.getReduction();
    } else if (auto scatter = dyn_cast<ReduceScatterOp>(op)) {
      reduction = scatter.getReduction();
    }
    if (reduction == ReductionKind::LogSumExp) {
      return op->emitError("verify-partition: no library reduces by logsumexp, expected "
                           "expand-log-sum-exp to replace it");
    }
    return success();
  }
};

} // namespace
} // namespace weft
