//===- LayoutSpaces.cpp - shardings as numbers ----------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LayoutSpaces.h"

#include "weft/Dialect/Weft/IR/ElementTypes.h"
#include "weft/Dialect/Weft/IR/Sharding.h"
#include "weft/Pipeline/ReshardProblem.h"

using namespace mlir;

namespace weft {

planner::LayoutSpace &LayoutSpaces::ofRank(int64_t rank) {
  auto known = spaces.find(rank);
  if (known == spaces.end()) {
    std::vector<int64_t> sizes(mesh.getSizes().begin(), mesh.getSizes().end());
    known = spaces.try_emplace(rank, std::move(sizes), uint32_t(rank)).first;
  }
  return known->second;
}

uint32_t LayoutSpaces::numberOf(ShardingAttr sharding) {
  return ofRank(int64_t(sharding.getDims().size())).numberOf(toLayout(sharding));
}

ShardingAttr LayoutSpaces::sharding(int64_t rank, uint32_t number, ReductionKind reduction) {
  ShardingAttr &known = shardings[{rank, number, reduction}];
  if (!known) {
    known = makeSharding(rank, number, reduction);
  }
  return known;
}

ShardingAttr LayoutSpaces::makeSharding(int64_t rank, uint32_t number, ReductionKind reduction) {
  const planner::Layout &layout = ofRank(rank).layout(number);
  auto dims = llvm::map_to_vector(
      layout.dims, [&](const planner::Axes &axes) { return toAttribute(mesh, axes); });
  ArrayAttr unreduced = toAttribute(mesh, layout.unreduced);
  return withUnreduced(ShardingAttr::get(mesh, dims), unreduced.getValue(),
                       unreduced.empty() ? ReductionKind::Sum : reduction);
}

bool mayBeCut(VariableOp variable, int64_t dim) {
  if (variable.getRole() != VariableRole::Input) {
    return true;
  }
  StringRef name = cast<StringAttr>(variable.getDimensions()[dim]).getValue();
  return llvm::is_contained({"micro_batch", "batch", "sequence"}, name);
}

bool canPend(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && isa<FloatType>(tensor.getElementType()) && !isNarrow(tensor.getElementType());
}

} // namespace weft
