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
  /// An option of each node of the problem; empty if no choice keeps all rules. The options of
  /// other nodes follow from those of ops and variables in the same way, whether a search or a plan
  /// chose these.
  planner::Choice choice;
  /// The solver's answer. `choice` comes from its choice that fits or, if none does, its smallest.
  planner::Solution solution;
};

/// REQUIRES: the problem has a node.
ShardingChoice chooseShardings(const ShardingProblem &shardings);

/// Like chooseShardings, but allows only `options` for `node`: ascending numbers of the node's
/// options, at least one.
ShardingChoice chooseShardingsWith(const ShardingProblem &shardings, uint32_t node,
                                   llvm::ArrayRef<uint32_t> options);

/// Returns the seconds of reshards that the problem counts under `choice`, but the program does not
/// need: another use of the value has the same reshard, or the value is defined in that sharding.
double sparedSeconds(ShardingProblem &shardings, const planner::Choice &choice,
                     planner::Prices &prices);

} // namespace weft

#endif // WEFT_LIB_PIPELINE_PLAN_SOLVESHARDINGS_H
