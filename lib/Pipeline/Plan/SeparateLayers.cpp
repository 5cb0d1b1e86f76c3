//===- SeparateLayers.cpp - functions of layers that entries tell apart ---===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LayerUses.h"
#include "weft/Pipeline/ReadPlan.h"

#include "weft/Description/LayerKinds.h"
#include "weft/Dialect/Weft/IR/AttributeNames.h"
#include "weft/Pipeline/Plan/Passes.h"

#include <map>

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_SEPARATELAYERSPASS
#include "weft/Pipeline/Plan/Passes.h.inc"

namespace {

/// The number of a kind of layers; null for what is of no layer.
using KindNumber = std::optional<size_t>;

class LayerSeparator {
public:
  LayerSeparator(ModuleOp module, const LayerUses &uses, const std::vector<desc::LayerKind> &kinds)
      : symbols(module), uses(uses), kinds(kinds) {}

  /// Returns the number of copies.
  unsigned run() {
    for (const auto &[function, layers] : uses.all()) {
      makeVersions(cast<func::FuncOp>(function), layers);
    }
    for (const auto &[original, ofKinds] : versions) {
      for (const auto &[kind, version] : ofKinds) {
        redirect(version, kind);
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
  KindNumber kindOf(std::optional<int64_t> layer) const {
    return layer ? KindNumber(desc::kindOf(kinds, *layer)) : std::nullopt;
  }

  /// The first kind keeps the function, and copies stand in the order of kinds: in a written plan,
  /// entries for all layers stand before exceptions.
  void makeVersions(func::FuncOp function, const std::set<std::optional<int64_t>> &layers) {
    std::set<KindNumber> numbers;
    for (std::optional<int64_t> layer : layers) {
      numbers.insert(kindOf(layer));
    }
    std::map<KindNumber, func::FuncOp> &ofKinds = versions[function.getSymName()];
    Operation *last = function;
    for (KindNumber number : numbers) {
      func::FuncOp version = function;
      if (!ofKinds.empty()) {
        version = function.clone();
        version.setName((function.getSymName() + "." + Twine(ofKinds.size() + 1)).str());
        version->setAttr(kCopyOfAttrName, function.getSymNameAttr());
        symbols.insert(version, std::next(Block::iterator(last)));
        ++copies;
      }
      ofKinds[number] = version;
      last = version;
    }
  }

  /// Makes calls in `function`, the version for `kind`, go to the versions for their kinds.
  void redirect(func::FuncOp function, KindNumber kind) {
    for (auto call : function.getOps<CallOp>()) {
      std::optional<int64_t> layer = layerOf(call, std::nullopt);
      func::FuncOp callee =
          versions.find(call.getCallee())->second.at(layer ? kindOf(layer) : kind);
      call.setCallee(callee.getSymName());
    }
  }

  SymbolTable symbols;
  const LayerUses &uses;
  const std::vector<desc::LayerKind> &kinds;
  /// The versions of each called function, by the name of the original.
  llvm::StringMap<std::map<KindNumber, func::FuncOp>> versions;
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
    std::vector<std::vector<int64_t>> firstLayers =
        desc::firstLayersOf(desc::layerKinds(*spec), uses.last().value_or(-1));
    if (firstLayers.size() < 2) {
      return;
    }
    const std::vector<desc::LayerKind> kinds = desc::kindsFrom(firstLayers);
    numCopies += LayerSeparator(module, uses, kinds).run();
    Builder builder(module);
    auto toAttribute = [&](ArrayRef<int64_t> layers) -> Attribute {
      return builder.getI64ArrayAttr(layers);
    };
    module->setAttr(kLayerBordersAttrName,
                    builder.getArrayAttr(llvm::map_to_vector(firstLayers, toAttribute)));
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
