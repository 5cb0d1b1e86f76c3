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
    if (countStages(module) == 1 || stageModulesOf(module).front() != module) {
      return; // There is nothing to separate any more.
    }
    std::vector<OwningOpRef<ModuleOp>> taken = takeStages(module);
    module.getBody()->clear();
    for (auto [stage, own] : llvm::enumerate(taken)) {
      own->setSymName("stage_" + std::to_string(stage));
      module.push_back(own.release());
    }
  }
};

} // namespace
} // namespace weft
