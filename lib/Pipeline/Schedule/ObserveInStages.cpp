//===- ObserveInStages.cpp - what each pipeline stage observes ------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "program/ProgramCheck.h"
#include "weft/Dialect/Weft/IR/StageMarks.h"
#include "weft/Dialect/Weft/IR/Weft.h"
#include "weft/Pipeline/Schedule/Passes.h"

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_OBSERVEINSTAGESPASS
#include "weft/Pipeline/Schedule/Passes.h.inc"

namespace {

struct ObserveInStagesPass : impl::ObserveInStagesPassBase<ObserveInStagesPass> {
  void runOnOperation() override {
    if (countStages(getOperation()) == 1) {
      return;
    }
    SmallVector<ObserveOp> observes;
    getOperation().walk([&](ObserveOp op) { observes.push_back(op); });
    for (ObserveOp op : observes) {
      std::optional<int64_t> own = markedStageOf(op);
      bool isScalar = cast<RankedTensorType>(op.getValue().getType()).getRank() == 0;
      // What is of no stage is of all; tensors are reported by who has them.
      if (isScalar && own && *own != kReporter) {
        observeInReporter(op, *own);
      }
    }
  }

  static void observeInReporter(ObserveOp op, int64_t own) {
    OpBuilder builder(op);
    Value value = op.getValue();
    Value sent = TransferOp::create(builder, op.getLoc(), value.getType(), value, own, kReporter)
                     .getOutput();
    auto copy = cast<ObserveOp>(builder.clone(*op));
    copy.getValueMutable().assign(sent);
    markStage(copy, kReporter);
    if (!rt::decidesRun({op.getName().str(), {}})) {
      op.erase();
    }
  }

  /// The stage of rank 0, which reports.
  static constexpr int64_t kReporter = 0;
};

} // namespace
} // namespace weft
