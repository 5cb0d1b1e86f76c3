//===- ShardingReasons.h - why values are sharded as they are -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_PLAN_SHARDINGREASONS_H
#define WEFT_LIB_PIPELINE_PLAN_SHARDINGREASONS_H

#include "ShardingProblem.h"

#include "weft/Pipeline/Dimensions.h"

namespace weft {

/// The attributes `weft.pinned_by` of ops and variables. They are removed before a problem is
/// built, so that ops which differ only in the origin of their pins are decided together.
using PinOrigins = llvm::DenseMap<mlir::Operation *, mlir::ArrayAttr>;

/// Explains a choice: the layout of each node, and the cost of the node's other options if all
/// other nodes stay as chosen. All arguments must outlive it.
class ShardingReasons {
public:
  ShardingReasons(mlir::ModuleOp module, const ShardingProblem &shardings,
                  const planner::Choice &choice, const PinOrigins &origins, bool hasMachine);

  /// Returns the cost of `option` of `node` and of its edges while all other nodes stay as chosen:
  /// seconds or, without a machine, bytes sent.
  double secondsOf(uint32_t node, uint32_t option) const;

  /// Returns the layout of a value or a variable under `option`: "batch over dp, ffn over tp".
  std::string layoutOf(mlir::Value value, const ShardingEnd &end, uint32_t option);
  std::string layoutOf(VariableOp variable, const ShardingEnd &end, uint32_t option);

  /// Returns the reason why the chosen layout was chosen.
  std::string whyOf(mlir::Value value, const ShardingEnd &end);
  std::string whyOf(VariableOp variable, const ShardingEnd &end);

private:
  using LayoutText = llvm::function_ref<std::string(uint32_t option)>;

  llvm::SmallVector<std::string> dimensionsOf(mlir::Value value);
  std::string layoutText(ShardingAttr sharding, llvm::ArrayRef<std::string> dimensions) const;
  ShardingAttr shardingOf(mlir::Type type, const ShardingEnd &end, uint32_t option) const;
  std::string whyOf(mlir::Operation *owner, const ShardingEnd &end, LayoutText layoutOf) const;
  std::string pinOf(mlir::Operation *owner) const;
  std::string compare(const ShardingEnd &end, LayoutText layoutOf) const;
  std::string timeText(double seconds) const;

  const ShardingProblem &shardings;
  const planner::Choice &choice;
  const PinOrigins &origins;
  const bool hasMachine;
  Dimensions dimensions;
  /// The numbers of each node's edges.
  std::vector<llvm::SmallVector<uint32_t, 4>> edges;
};

/// Writes the reasons of all ops, variables and arguments as `weft.why`.
void writeReasons(mlir::ModuleOp module, const ShardingProblem &shardings,
                  const planner::Choice &choice, const PinOrigins &origins, bool hasMachine);

} // namespace weft

#endif // WEFT_LIB_PIPELINE_PLAN_SHARDINGREASONS_H
