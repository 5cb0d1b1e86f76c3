//===- ReshardTables.cpp - tables of costs of reshards --------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ReshardTables.h"

#include "weft/Dialect/Weft/IR/Sharding.h"
#include "weft/Pipeline/ReshardProblem.h"

using namespace mlir;

namespace weft {

const ReshardTable &ReshardTables::of(RankedTensorType type, ReductionKind reduction) {
  const std::vector<uint32_t> &searched = spaces.searched(type.getRank());
  auto [place, isNew] = known.try_emplace({type.getAsOpaquePointer(), reduction, searched.size()});
  if (isNew) {
    place->second = make(type, reduction, searched);
  }
  return place->second;
}

ReshardTable ReshardTables::make(RankedTensorType type, ReductionKind reduction,
                                 ArrayRef<uint32_t> searched) {
  const planner::LayoutSpace &space = spaces.of(type);
  ReshardTable table;
  std::vector<uint32_t> layouts;
  std::vector<int64_t> shape = type.getShape().vec();
  llvm::copy_if(searched, std::back_inserter(layouts), [&](uint32_t number) {
    return space.divides(number, shape) && (canPend(type) || !space.isPending(number));
  });
  const uint32_t size = uint32_t(layouts.size());
  table.places.assign(space.size(), size);
  for (uint32_t place = 0; place < size; ++place) {
    table.places[layouts[place]] = place;
  }
  ShardingAttr replicated = ShardingAttr::getReplicated(spaces.getMesh(), type.getRank());
  planner::ReshardProblem problem = makeReshardProblem(type, replicated, replicated);
  problem.scatters = reduction != ReductionKind::LogSumExp;
  std::vector<double> costs =
      space.costs(problem, canPend(type), layouts, layouts, std::ref(prices));
  std::vector<double> seconds(size_t(size + 1) * (size + 1), planner::kInfinity);
  for (size_t row = 0; row < size; ++row) {
    for (size_t column = 0; column < size; ++column) {
      // Users accept pending values only as sums.
      bool isAccepted = reduction == ReductionKind::Sum ||
                        !(space.isPending(layouts[row]) && space.isPending(layouts[column]));
      if (isAccepted) {
        seconds[row * (size + 1) + column] = costs[row * size + column];
      }
    }
  }
  std::string name;
  llvm::raw_string_ostream(name) << type;
  // Paths make a value pending only in their last step, so that a detour over a pending layout may
  // be shorter.
  bool isShortest = reduction == ReductionKind::Sum && !canPend(type);
  table.costs = {std::move(name), size + 1, size + 1, std::move(seconds), isShortest};
  return table;
}

} // namespace weft
