//===- SeparateLayers.cpp - functions of layers that entries tell apart ---===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LayerUses.h"
#include "weft/Pipeline/ReadPlan.h"

#include "weft/Dialect/Weft/IR/AttributeNames.h"
#include "weft/Pipeline/Plan/Passes.h"

#include <map>

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_SEPARATELAYERSPASS
#include "weft/Pipeline/Plan/Passes.h.inc"

namespace {

/// A run of layers between two borders, by number; null for what is of no layer.
using LayerRun = std::optional<int64_t>;

class LayerSeparator {
public:
  LayerSeparator(ModuleOp module, const LayerUses &uses, ArrayRef<int64_t> borders)
      : symbols(module), uses(uses), borders(borders) {}

  /// Returns the number of copies.
  unsigned run() {
    for (const auto &[function, layers] : uses.all()) {
      makeVersions(cast<func::FuncOp>(function), layers);
    }
    for (const auto &[original, ofRuns] : versions) {
      for (const auto &[run, version] : ofRuns) {
        redirect(version, run);
      }
    }
    for (auto root : symbols.getOp()->getRegion(0).getOps<func::FuncOp>()) {
      if (!root.isPrivate()) {
        redirect(root, std::nullopt);
      }
    }
    return copies;
  }

private:
  LayerRun runOf(std::optional<int64_t> layer) const {
    return layer ? LayerRun(llvm::upper_bound(borders, *layer) - borders.begin()) : std::nullopt;
  }

  /// The first run keeps the function.
  void makeVersions(func::FuncOp function, const std::set<std::optional<int64_t>> &layers) {
    std::map<LayerRun, func::FuncOp> &ofRuns = versions[function.getSymName()];
    Operation *last = function;
    for (std::optional<int64_t> layer : layers) {
      func::FuncOp &version = ofRuns[runOf(layer)];
      if (version) {
        continue;
      }
      version = function;
      if (ofRuns.size() > 1) {
        version = function.clone();
        version.setName((function.getSymName() + "." + Twine(ofRuns.size())).str());
        version->setAttr(kCopyOfAttrName, function.getSymNameAttr());
        symbols.insert(version, std::next(Block::iterator(last)));
        ++copies;
      }
      last = version;
    }
  }

  /// Makes calls in `function`, the version for `run`, go to the versions for their runs.
  void redirect(func::FuncOp function, LayerRun run) {
    for (auto call : function.getOps<CallOp>()) {
      std::optional<int64_t> layer = layerOf(call, std::nullopt);
      func::FuncOp callee = versions.find(call.getCallee())->second.at(layer ? runOf(layer) : run);
      call.setCallee(callee.getSymName());
    }
  }

  SymbolTable symbols;
  const LayerUses &uses;
  ArrayRef<int64_t> borders;
  /// The versions of each called function, by the name of the original.
  llvm::StringMap<std::map<LayerRun, func::FuncOp>> versions;
  unsigned copies = 0;
};

struct SeparateLayersPass : impl::SeparateLayersPassBase<SeparateLayersPass> {
  using Base::Base;
  SeparateLayersPass(const SeparateLayersPassOptions &options, const desc::PlanSpec *written)
      : Base(options), written(written) {}

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<desc::PlanSpec> spec =
        readPlan(module, "separate-layers", plan, {pins.begin(), pins.end()}, written);
    if (failed(spec)) {
      return signalPassFailure();
    }
    LayerUses uses(module);
    std::vector<int64_t> borders = desc::layerBorders(*spec);
    llvm::erase_if(borders, [&](int64_t border) { return border > uses.last().value_or(-1); });
    if (borders.empty()) {
      return;
    }
    numCopies += LayerSeparator(module, uses, borders).run();
    module->setAttr(kLayerBordersAttrName, Builder(module).getI64ArrayAttr(borders));
  }

private:
  /// The plan to apply in place of the options'; may be null.
  const desc::PlanSpec *written = nullptr;
};

} // namespace

std::unique_ptr<Pass> createSeparateLayersPass(const SeparateLayersPassOptions &options,
                                               const desc::PlanSpec *plan) {
  return std::make_unique<SeparateLayersPass>(options, plan);
}

} // namespace weft
