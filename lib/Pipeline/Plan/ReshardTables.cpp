//===- ReshardTables.cpp - tables of costs of reshards --------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ReshardTables.h"

#include "weft/Dialect/Weft/IR/Sharding.h"
#include "weft/Pipeline/ReshardProblem.h"

#include <numeric>

using namespace mlir;

namespace weft {

const planner::Table &ReshardTables::of(RankedTensorType type, ReductionKind reduction,
                                        uint32_t count) {
  auto [place, isNew] = known.try_emplace({type.getAsOpaquePointer(), reduction, count});
  if (isNew) {
    place->second = make(type, reduction, count);
  }
  return place->second;
}

planner::Table ReshardTables::make(RankedTensorType type, ReductionKind reduction, uint32_t count) {
  const planner::LayoutSpace &space = spaces.of(type);
  std::vector<uint32_t> all(count);
  std::iota(all.begin(), all.end(), 0);
  ShardingAttr replicated = ShardingAttr::getReplicated(spaces.getMesh(), type.getRank());
  planner::ReshardProblem problem = makeReshardProblem(type, replicated, replicated);
  problem.scatters = reduction != ReductionKind::LogSumExp;
  std::string name;
  llvm::raw_string_ostream(name) << type;
  // Paths make a value pending only in their last step, so that a detour over a pending layout may
  // be shorter.
  bool isShortest = reduction == ReductionKind::Sum && !canPend(type);
  planner::Table table{std::move(name), count, count,
                       space.costs(problem, canPend(type), all, all, std::ref(prices)), isShortest};
  for (uint32_t row = 0; row < count && reduction != ReductionKind::Sum; ++row) {
    for (uint32_t column = 0; column < count; ++column) {
      // Users accept pending values only as sums.
      if (space.isPending(row) && space.isPending(column)) {
        table.seconds[row * count + column] = planner::kInfinity;
      }
    }
  }
  return table;
}

} // namespace weft
