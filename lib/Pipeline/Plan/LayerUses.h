//===- LayerUses.h - the layers that functions belong to ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Calls that belong to layer N have a label that says so (weft/Pipeline/LayerLabels.h), and calls
// inside of what they call are of that layer, too, unless their labels name another.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_PLAN_LAYERUSES_H
#define WEFT_LIB_PIPELINE_PLAN_LAYERUSES_H

#include "weft/Dialect/Weft/IR/Weft.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/MapVector.h"

#include <optional>
#include <set>

namespace weft {

/// Returns the layer that a call belongs to, if it stands in a function that is called for `outer`.
std::optional<int64_t> layerOf(CallOp call, std::optional<int64_t> outer);

/// The layers that each function of a module is called for, directly or by what calls it.
class LayerUses {
public:
  explicit LayerUses(mlir::ModuleOp module);

  /// Returns the layers of `function`; null if it is a root, or also called for no layer.
  const std::set<std::optional<int64_t>> *of(mlir::func::FuncOp function) const;
  /// Returns the last layer of all; nothing if no call is of a layer.
  std::optional<int64_t> last() const;
  /// Returns the layers of each called function, null for calls of no layer, the smallest first.
  const llvm::MapVector<mlir::Operation *, std::set<std::optional<int64_t>>> &all() const {
    return uses;
  }

private:
  llvm::MapVector<mlir::Operation *, std::set<std::optional<int64_t>>> uses;
};

} // namespace weft

#endif // WEFT_LIB_PIPELINE_PLAN_LAYERUSES_H
