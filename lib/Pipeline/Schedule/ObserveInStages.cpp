//===- ObserveInStages.cpp - what each pipeline stage observes ------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "program/ProgramCheck.h"
#include "weft/Dialect/Weft/IR/Weft.h"
#include "weft/Pipeline/Schedule/Passes.h"
#include "weft/Pipeline/StageMarks.h"

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_OBSERVEINSTAGESPASS
#include "weft/Pipeline/Schedule/Passes.h.inc"

namespace {

struct ObserveInStagesPass : impl::ObserveInStagesPassBase<ObserveInStagesPass> {
  void runOnOperation() override {
    const int64_t stages = countStages(getOperation());
    if (stages == 1) {
      return;
    }
    SmallVector<ObserveOp> observes;
    getOperation().walk([&](ObserveOp op) { observes.push_back(op); });
    for (ObserveOp op : observes) {
      spread(op, stages);
    }
  }

  static void spread(ObserveOp op, int64_t stages) {
    std::optional<int64_t> own = markedStageOf(op);
    if (!own || cast<RankedTensorType>(op.getValue().getType()).getRank() > 0) {
      return; // What is of no stage is of all; tensors are reported by who has them.
    }
    bool decides = rt::decidesRun({op.getName().str(), {}});
    for (int64_t stage = 0; stage < (decides ? stages : 1); ++stage) {
      if (stage != *own) {
        observeIn(stage, op, *own);
      }
    }
    if (!decides && *own != 0) {
      op.erase();
    }
  }

  static void observeIn(int64_t stage, ObserveOp op, int64_t own) {
    OpBuilder builder(op);
    Value value = op.getValue();
    Value sent =
        TransferOp::create(builder, op.getLoc(), value.getType(), value, own, stage).getOutput();
    auto copy = cast<ObserveOp>(builder.clone(*op));
    copy.getValueMutable().assign(sent);
    markStage(copy, stage);
  }
};

} // namespace
} // namespace weft
