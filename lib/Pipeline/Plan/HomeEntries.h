//===- HomeEntries.h - the entries of a plan that cut homes ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_PLAN_HOMEENTRIES_H
#define WEFT_LIB_PIPELINE_PLAN_HOMEENTRIES_H

#include "HomedValues.h"
#include "OpPins.h"

#include <optional>

namespace weft {

/// The names of the homes of a module's variables, and of the values that have the shapes of
/// variables: rounded copies and sums of gradients.
class HomeNames {
public:
  explicit HomeNames(mlir::ModuleOp module);

  /// Returns the name of the home of a variable itself.
  std::string of(VariableOp variable) const { return copies.homeOf(variable); }
  /// Returns the names of all homes that have the shape of a variable.
  llvm::SmallVector<std::string> allOf(VariableOp variable) const;

private:
  WeightCopies copies;
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<std::string>> sums;
};

/// The entry that holds for one dimension of a home.
struct HomeEntry {
  /// Null without one.
  const desc::ShardingSpec *entry = nullptr;
  /// True if it is a `home`, false if it is a `sharding`, which also applies to ops.
  bool isHome = false;
};

/// Two dimensions that equally strong entries cut over one axis.
struct AxisClash {
  std::string axis;
  size_t first, second;
};

/// The entries that hold for a home, by dimension.
struct HomeEntries {
  llvm::SmallVector<HomeEntry> dims;
  llvm::SmallVector<OverruledEntry> overruled;
  /// If set, `dims` still has both entries.
  std::optional<AxisClash> clash;
};

/// Returns the entries of the home called `name`, of the shape of `variable`. Of two entries that
/// cut two dimensions over one axis, the stronger holds.
HomeEntries entriesOfHome(VariableOp variable, const std::string &name, const desc::PlanSpec &plan);

} // namespace weft

#endif // WEFT_LIB_PIPELINE_PLAN_HOMEENTRIES_H
