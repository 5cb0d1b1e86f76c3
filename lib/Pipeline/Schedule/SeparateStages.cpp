//===- SeparateStages.cpp - a module for each pipeline stage -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Dialect/Weft/IR/StageMarks.h"
#include "weft/Dialect/Weft/IR/Weft.h"
#include "weft/Pipeline/Schedule/Passes.h"
#include "weft/Pipeline/Schedule/TakeStage.h"

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_SEPARATESTAGESPASS
#include "weft/Pipeline/Schedule/Passes.h.inc"

namespace {

struct SeparateStagesPass : impl::SeparateStagesPassBase<SeparateStagesPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    const int64_t stages = countStages(module);
    if (stages == 1 || stageModulesOf(module).front() != module) {
      return; // There is nothing to separate any more.
    }
    SmallVector<ModuleOp> taken;
    for (int64_t stage = 0; stage < stages; ++stage) {
      ModuleOp own = taken.emplace_back(module.clone());
      takeStage(own, stage);
      own.setSymName("stage_" + std::to_string(stage));
    }
    module.getBody()->clear();
    for (ModuleOp own : taken) {
      module.push_back(own);
    }
  }
};

} // namespace
} // namespace weft
