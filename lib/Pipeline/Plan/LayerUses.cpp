//===- LayerUses.cpp - the layers that functions belong to ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LayerUses.h"

#include "weft/Pipeline/LayerLabels.h"

#include "mlir/IR/SymbolTable.h"

using namespace mlir;

namespace weft {

std::optional<int64_t> layerOf(CallOp call, std::optional<int64_t> outer) {
  std::optional<int64_t> layer = layerOfCallLabel(call.getLabel());
  return layer ? layer : outer;
}

LayerUses::LayerUses(ModuleOp module) {
  SymbolTable symbols(module);
  SmallVector<std::pair<func::FuncOp, std::optional<int64_t>>> work;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (!function.isPrivate()) {
      work.push_back({function, std::nullopt});
    }
  }
  while (!work.empty()) {
    auto [function, outer] = work.pop_back_val();
    for (auto call : function.getOps<CallOp>()) {
      auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
      std::optional<int64_t> layer = layerOf(call, outer);
      if (uses[callee].insert(layer).second) {
        work.push_back({callee, layer});
      }
    }
  }
}

const std::set<std::optional<int64_t>> *LayerUses::of(func::FuncOp function) const {
  auto found = uses.find(function);
  bool isOfLayers = found != uses.end() && *found->second.begin(); // Null is the smallest.
  return isOfLayers ? &found->second : nullptr;
}

std::optional<int64_t> LayerUses::last() const {
  std::optional<int64_t> last;
  for (const auto &[function, layers] : uses) {
    last = std::max(last, *layers.rbegin());
  }
  return last;
}

} // namespace weft
