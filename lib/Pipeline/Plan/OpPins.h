//===- OpPins.h - what a plan says of ops ---------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A plan knows an op by the part of the model that it comes from, "mlp.up", which may have several
// ops, forward and backward, and by a name of its own, "mlp.up/contract/2". Both are the same
// before and after shardings are chosen.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_PLAN_OPPINS_H
#define WEFT_LIB_PIPELINE_PLAN_OPPINS_H

#include "weft/Description/Plan.h"
#include "weft/Pipeline/Dimensions.h"

namespace weft {

/// Holds for the module as it was.
class OpNames {
public:
  explicit OpNames(mlir::ModuleOp module);

  /// "mlp.up"; empty for an op of no part. What a plan cannot write is '_'.
  llvm::StringRef partOf(mlir::Operation *op) const { return names.find(op)->second.part; }
  /// "mlp.up/contract/2": the second of its kind in that part.
  llvm::StringRef nameOf(mlir::Operation *op) const { return names.find(op)->second.full; }
  bool matches(const std::string &pattern, mlir::Operation *op) const;

private:
  struct Names {
    std::string part, full;
  };
  llvm::DenseMap<mlir::Operation *, Names> names;
};

/// An entry that does not hold for one factor of an op, as a stronger one has its axes.
struct OverruledEntry {
  const desc::ShardingSpec *weaker, *stronger;
};

/// What a plan says of an op.
struct OpPins {
  /// For each factor of its rule the axes that cut it, or unit where the plan says nothing that the
  /// op can do; then, where it says which axes have terms of pending sums, a dictionary of these,
  /// by the number of the operand that has them, or "all".
  llvm::SmallVector<mlir::Attribute> pins;
  /// For each of `pins` the entry that says so; null for none, and for terms.
  llvm::SmallVector<const desc::ShardingSpec *> entries;
  llvm::SmallVector<OverruledEntry> overruled;
};

/// What `plan` says of an axis by the strongest entry holds; of equally strong ones, what it says
/// of a factor that results have.
OpPins pinsOf(ShardableOpInterface op, MeshAttr mesh, const OpNames &names, Dimensions &dimensions,
              const desc::PlanSpec &plan);

/// The axes of a plan's entry as an attribute.
mlir::ArrayAttr toAxesAttr(mlir::MLIRContext *context, const std::vector<std::string> &axes);

} // namespace weft

#endif // WEFT_LIB_PIPELINE_PLAN_OPPINS_H
