//===- SplitStages.cpp - a step in pipeline stages --------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScalarSums.h"
#include "StageFunctions.h"
#include "StageRoots.h"
#include "StageSums.h"
#include "VerifyStages.h"

#include "weft/Description/StageLayers.h"
#include "weft/Pipeline/Plan/Passes.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_SPLITSTAGESPASS
#include "weft/Pipeline/Plan/Passes.h.inc"

namespace {

/// The calls of each function of one micro-batch.
using MicroBatchCalls = llvm::MapVector<func::FuncOp, SmallVector<CallOp>>;

struct SplitStagesPass : impl::SplitStagesPassBase<SplitStagesPass> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (layers.size() < 2 && stages < 2) {
      return;
    }
    MicroBatchCalls calls = findMicroBatches(module);
    FailureOr<SmallVector<int64_t>> own = layersOfStages(module, calls);
    if (failed(own) || failed(split(module, std::move(calls), StageLayers(*own))) ||
        failed(verifyStages(module))) {
      signalPassFailure();
    }
  }

  static MicroBatchCalls findMicroBatches(ModuleOp module) {
    MicroBatchCalls calls;
    SymbolTable symbols(module);
    for (auto root : module.getOps<func::FuncOp>()) {
      for (auto call : root.getOps<CallOp>()) {
        auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
        if (callee->hasAttr(kMicroBatchAttrName)) {
          calls[callee].push_back(call);
        }
      }
    }
    return calls;
  }

  /// Returns the number of layers of each stage. Fails if they cannot be those of the model.
  FailureOr<SmallVector<int64_t>> layersOfStages(ModuleOp module,
                                                 const MicroBatchCalls &calls) const {
    if (calls.empty()) {
      return module.emitError("split-stages: expected two micro-batches or more, each a call as "
                              "accumulate-micro-batches makes it");
    }
    int64_t count = 0;
    for (func::FuncOp function : llvm::make_first_range(calls)) {
      if (markedStageOf(function)) {
        return function.emitError("split-stages: the module is split into stages already");
      }
      for (Operation &op : function.getOps()) {
        std::optional<LayerUse> use = layerUseOf(&op);
        count = std::max(count, use ? use->layer + 1 : 0);
      }
    }
    if (count == 0) {
      return module.emitError("split-stages: the model has no layers, expected calls labelled "
                              "'layers.0', 'layers.1' and so on");
    }
    SmallVector<int64_t> all(layers.begin(), layers.end());
    if (layers.empty()) {
      llvm::append_range(all, desc::splitLayers(count, stages));
    }
    for (auto [stage, own] : llvm::enumerate(all)) {
      if (own < 1) {
        return module.emitError("split-stages: stage ")
               << stage << " has " << own << " layers, expected at least 1";
      }
    }
    if (int64_t total = StageLayers(all).countLayers(); total != count) {
      return module.emitError("split-stages: the stages have ")
             << total << " layers together, expected the model's " << count;
    }
    return all;
  }

  static LogicalResult separateGradients(ModuleOp module, MicroBatchCalls &calls,
                                         const StageLayers &stages) {
    for (auto &[function, own] : calls) {
      StagePositions ofTerms(module, stages);
      if (failed(ofTerms.compute(function, own.front()))) {
        return failure();
      }
      separateSums(function, own, stages, ofTerms);
    }
    return success();
  }

  LogicalResult split(ModuleOp module, MicroBatchCalls calls, const StageLayers &stages) const {
    if (ownSums && failed(separateGradients(module, calls, stages))) {
      return failure();
    }
    StagePositions positions(module, stages);
    for (const auto &[function, own] : calls) {
      if (failed(positions.compute(function, own.front()))) {
        return failure();
      }
    }
    // First roots with micro-batches: they use all variables, `init` assigns some.
    llvm::SetVector<func::FuncOp> roots;
    for (const auto &[function, own] : calls) {
      roots.insert(own.front()->getParentOfType<func::FuncOp>());
      splitMicroBatch(function, own, stages, positions);
    }
    for (auto function : module.getOps<func::FuncOp>()) {
      if (!function.isPrivate()) {
        roots.insert(function);
      }
    }
    RootStages marking(module, stages.countStages());
    for (func::FuncOp root : roots) {
      marking.run(root);
    }
    llvm::for_each(roots, separateScalarSums);
    return success();
  }
};

} // namespace
} // namespace weft
