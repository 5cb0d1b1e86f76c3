//===- OpPins.h - pins of ops by a plan -----------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A plan may name an op by its part of the model, "mlp.up", which may have several ops, forward and
// backward, or by its own name, "mlp.up/contract/2". Both names are the same before and after
// shardings are chosen.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_PLAN_OPPINS_H
#define WEFT_LIB_PIPELINE_PLAN_OPPINS_H

#include "LayerUses.h"

#include "weft/Description/Plan.h"
#include "weft/Pipeline/Dimensions.h"

namespace weft {

/// The layers of an op or a variable. Those of an op are of one kind, behind separate-layers.
struct OpLayers {
  /// The first layer; null if it is of none.
  std::optional<int64_t> first;
  /// All of them, unless there is only one.
  const std::set<std::optional<int64_t>> *all = nullptr;

  /// Returns true if an entry for `layers` is for some of them.
  bool areSomeIn(const desc::LayerRange &layers) const {
    return all ? llvm::any_of(*all, [&](auto layer) { return layers.has(layer); })
               : layers.has(first);
  }
  bool have(int64_t layer) const { return all ? all->count(layer) != 0 : first == layer; }
};

/// The names of all ops of a module, which must not change afterwards.
class OpNames {
public:
  explicit OpNames(mlir::ModuleOp module);

  /// Returns the part of the model, "mlp.up", with '_' for characters that plans cannot contain;
  /// empty for an op of no part.
  llvm::StringRef partOf(mlir::Operation *op) const { return names.find(op)->second.part; }
  /// Returns the op's own name: "mlp.up/contract/2" is the second contraction of its part,
  /// "mlp.up/padding/pad/1" the first pad that padding added to it.
  llvm::StringRef nameOf(mlir::Operation *op) const { return names.find(op)->second.full; }
  bool matches(const std::string &pattern, mlir::Operation *op) const;
  /// Returns the layers of `op`: those of all calls of its function, or that of the variable whose
  /// initial value it computes.
  OpLayers layersOf(mlir::Operation *op) const;

private:
  struct Names {
    std::string part, full;
  };
  llvm::DenseMap<mlir::Operation *, Names> names;
  LayerUses uses;
};

/// Returns true if `pattern` matches ops that padding adds, by their own names.
bool namesOpOfPadding(llvm::StringRef pattern);

/// An entry that is ignored for one factor of an op, as a stronger entry uses its axes elsewhere.
struct OverruledEntry {
  const desc::ShardingSpec *weaker, *stronger;
};

/// Returns the number of shards that `entry` cuts; 1 for null.
int64_t shardsOf(const desc::PlanSpec &plan, const desc::ShardingSpec *entry);

/// The entries of a plan that hold for the factors of an op's rule.
struct FactorEntries {
  /// For each factor its entry, or null.
  llvm::SmallVector<const desc::ShardingSpec *> entries;
  llvm::SmallVector<OverruledEntry> overruled;
};

/// Returns the entries of `plan` for the factors of `rule`, the rule of `op`. The strongest entry
/// with an axis holds; of equally strong ones the one for a factor of the results. With `evenOnly`,
/// entries that do not divide a factor do not hold for it.
FactorEntries entriesOfFactors(ShardableOpInterface op, const FactorRule &rule,
                               const OpNames &names, Dimensions &dimensions,
                               const desc::PlanSpec &plan, bool evenOnly);

/// The entries of a plan that apply to an op.
struct OpPins {
  /// For each factor of the op's rule the axes that cut it, or unit if the plan has no entry that
  /// the op can follow. If entries name axes of terms of pending sums, the last pin is a dictionary
  /// of these axes, by the number of the operand that is pending, or "all".
  llvm::SmallVector<mlir::Attribute> pins;
  /// For each of `pins` its entry; null without one, and for terms.
  llvm::SmallVector<const desc::ShardingSpec *> entries;
  llvm::SmallVector<OverruledEntry> overruled;
};

/// Returns the pins of `op` by `plan`, from `entriesOfFactors` with `evenOnly`.
OpPins pinsOf(ShardableOpInterface op, const OpNames &names, Dimensions &dimensions,
              const desc::PlanSpec &plan);

/// Returns the axes of a plan's entry as an attribute.
mlir::ArrayAttr toAxesAttr(mlir::MLIRContext *context, const std::vector<std::string> &axes);

} // namespace weft

#endif // WEFT_LIB_PIPELINE_PLAN_OPPINS_H
