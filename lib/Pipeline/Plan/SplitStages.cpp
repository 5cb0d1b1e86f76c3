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
    if (layers.size() < 2 && stages < 2 && placement.size() < 2) {
      return;
    }
    MicroBatchCalls calls = findMicroBatches(module);
    FailureOr<SmallVector<StageChunk>> chunks = makeChunks(module, calls);
    if (failed(chunks) || failed(split(module, std::move(calls), StageChunks(*chunks))) ||
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

  /// Returns the number of layers of the model. Fails if it cannot be split.
  static FailureOr<int64_t> countLayers(ModuleOp module, const MicroBatchCalls &calls) {
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
    return count;
  }

  /// Returns the stage of each chunk.
  SmallVector<int64_t> stagesOfChunks() const {
    SmallVector<int64_t> list(placement.begin(), placement.end());
    const auto count = layers.empty() ? stages : int64_t(layers.size());
    for (int64_t chunk = 0; placement.empty() && chunk < count; ++chunk) {
      list.push_back(chunk);
    }
    return list;
  }

  /// Returns the chunks of the stages. Fails if they cannot be those of the model.
  FailureOr<SmallVector<StageChunk>> makeChunks(ModuleOp module,
                                                const MicroBatchCalls &calls) const {
    FailureOr<int64_t> count = countLayers(module, calls);
    if (failed(count)) {
      return failure();
    }
    const SmallVector<int64_t> places = stagesOfChunks();
    std::vector<int64_t> counts(layers.begin(), layers.end());
    counts = layers.empty() ? desc::splitLayers(*count, int64_t(places.size())) : counts;
    if (counts.size() != places.size()) {
      return module.emitError("split-stages: got layers of ")
             << counts.size() << " chunks, expected those of the " << places.size()
             << " in placement";
    }
    SmallVector<StageChunk> chunks;
    for (auto [own, stage] : llvm::zip_equal(counts, places)) {
      // Given numbers may leave the outer chunks to what lies before the layers, and behind them.
      bool isOuter = chunks.empty() || chunks.size() + 1 == counts.size();
      int64_t least = !layers.empty() && isOuter ? 0 : 1;
      if (own < least) {
        return module.emitError("split-stages: stage ")
               << stage << " has " << own << " layers, expected at least " << least;
      }
      chunks.push_back({own, stage});
    }
    if (int64_t total = StageChunks(chunks).countLayers(); total != *count) {
      return module.emitError("split-stages: the stages have ")
             << total << " layers together, expected the model's " << *count;
    }
    if (!verifyPlacement(module, places)) {
      return failure();
    }
    return chunks;
  }

  /// Returns true if each stage up to the last has a chunk; else emits an error.
  static bool verifyPlacement(ModuleOp module, ArrayRef<int64_t> places) {
    llvm::SmallSetVector<int64_t, 8> used(places.begin(), places.end());
    for (int64_t stage : used) {
      if (stage < 0 || stage >= int64_t(used.size())) {
        module.emitError("split-stages: placement has ")
            << used.size() << " stages, expected them to be 0 to " << used.size() - 1 << ", got "
            << stage;
        return false;
      }
    }
    return true;
  }

  static LogicalResult separateGradients(ModuleOp module, MicroBatchCalls &calls,
                                         const StageChunks &chunks) {
    for (auto &[function, own] : calls) {
      StagePositions ofTerms(module, chunks);
      if (failed(ofTerms.compute(function, own.front()))) {
        return failure();
      }
      separateSums(function, own, chunks, ofTerms);
    }
    return success();
  }

  LogicalResult split(ModuleOp module, MicroBatchCalls calls, const StageChunks &chunks) const {
    if (ownSums && failed(separateGradients(module, calls, chunks))) {
      return failure();
    }
    StagePositions positions(module, chunks);
    for (const auto &[function, own] : calls) {
      if (failed(positions.compute(function, own.front()))) {
        return failure();
      }
    }
    // First roots with micro-batches: they use all variables, `init` assigns some.
    llvm::SetVector<func::FuncOp> roots;
    for (const auto &[function, own] : calls) {
      roots.insert(own.front()->getParentOfType<func::FuncOp>());
      splitMicroBatch(function, own, chunks, positions);
    }
    for (auto function : module.getOps<func::FuncOp>()) {
      if (!function.isPrivate()) {
        roots.insert(function);
      }
    }
    RootStages marking(module, chunks.lastStage());
    for (func::FuncOp root : roots) {
      marking.run(root);
    }
    llvm::for_each(roots, separateScalarSums);
    return success();
  }
};

} // namespace
} // namespace weft
