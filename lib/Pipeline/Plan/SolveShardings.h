//===- SolveShardings.h - the choice of a sharding problem ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_PLAN_SOLVESHARDINGS_H
#define WEFT_LIB_PIPELINE_PLAN_SOLVESHARDINGS_H

#include "ShardingProblem.h"

#include "weft/Planner/Solve.h"

namespace weft {

struct ShardingChoice {
  /// An option of each node of the problem; empty where no choice keeps all rules. What follows
  /// from how ops and variables are sharded is the same whether these were found or come from a
  /// plan.
  planner::Choice choice;
  /// What the solver says, of which `choice` is the one that fits, or else the smallest.
  planner::Solution solution;
};

/// REQUIRES: the problem has a node.
ShardingChoice chooseShardings(const ShardingProblem &shardings);

/// As chooseShardings, among choices that have one of `options` for `node`. These are numbers of
/// the node's options, in order, at least one.
ShardingChoice chooseShardingsWith(const ShardingProblem &shardings, uint32_t node,
                                   llvm::ArrayRef<uint32_t> options);

/// What the problem counts, under `choice`, for reshards that another use of the same value has
/// made already, or that the value as it was defined spares: so much less does the program take.
double sparedSeconds(ShardingProblem &shardings, const planner::Choice &choice,
                     planner::Prices &prices);

} // namespace weft

#endif // WEFT_LIB_PIPELINE_PLAN_SOLVESHARDINGS_H
