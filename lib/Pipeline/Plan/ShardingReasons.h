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

/// Of ops and variables the attribute `weft.pinned_by`, which is taken from them before they become
/// a problem: ops that are alike but for who pins them are decided together.
using PinOrigins = llvm::DenseMap<mlir::Operation *, mlir::ArrayAttr>;

/// What a choice says of each node, and what the node's other options would take if nothing else
/// moved. All arguments must outlive it.
class ShardingReasons {
public:
  ShardingReasons(mlir::ModuleOp module, const ShardingProblem &shardings,
                  const planner::Choice &choice, const PinOrigins &origins, bool hasMachine);

  /// What `option` of `node` takes, with all values that come to it and leave it, where all other
  /// nodes stay as chosen: seconds, without a machine bytes.
  double secondsOf(uint32_t node, uint32_t option) const;

  /// "batch over dp, ffn over tp": how `value`, or a variable, lies under the option.
  std::string layoutOf(mlir::Value value, const ShardingEnd &end, uint32_t option);
  std::string layoutOf(VariableOp variable, const ShardingEnd &end, uint32_t option);

  /// Why that is the chosen one.
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
  /// For each node the numbers of its edges.
  std::vector<llvm::SmallVector<uint32_t, 4>> edges;
};

/// Writes the reasons of all ops, variables and arguments as `weft.why`.
void writeReasons(mlir::ModuleOp module, const ShardingProblem &shardings,
                  const planner::Choice &choice, const PinOrigins &origins, bool hasMachine);

} // namespace weft

#endif // WEFT_LIB_PIPELINE_PLAN_SHARDINGREASONS_H
