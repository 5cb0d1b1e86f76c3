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

/// Returns the first part of each of three runs of neighboring parts: whole axes, of which the
/// smallest neighbors are joined while there are more.
static SmallVector<uint32_t> firstPartsOfRuns(MeshAttr mesh) {
  MeshParts parts = mesh.getParts();
  SmallVector<uint32_t> firsts;
  SmallVector<int64_t> sizes;
  uint32_t part = 0;
  for (const SplitAxis &axis : parts.axes()) {
    firsts.push_back(part);
    sizes.push_back(axis.size());
    part += uint32_t(axis.parts.size());
  }
  while (firsts.size() > 3) {
    size_t least = 0;
    for (size_t at = 1; at + 1 < sizes.size(); ++at) {
      least = sizes[at] * sizes[at + 1] < sizes[least] * sizes[least + 1] ? at : least;
    }
    sizes[least] *= sizes[least + 1];
    sizes.erase(sizes.begin() + ptrdiff_t(least) + 1);
    firsts.erase(firsts.begin() + ptrdiff_t(least) + 1);
  }
  return firsts;
}

LayoutSpaces::LayoutSpaces(MeshAttr mesh) : mesh(mesh) {
  if (mesh.getSizes().size() <= kMostFreeParts) {
    return;
  }
  SmallVector<uint32_t> firsts = firstPartsOfRuns(mesh);
  for (uint32_t part = 0; part < mesh.getSizes().size(); ++part) {
    firstOfRun.push_back(*std::prev(llvm::upper_bound(firsts, part)));
  }
}

bool LayoutSpaces::isSearched(ArrayRef<uint32_t> uses, ArrayRef<uint32_t> pinned) const {
  if (areAllSearched()) {
    return true;
  }
  unsigned runs = 0;
  bool isSteady = true; // In each run with fixed borders.
  std::optional<uint32_t> before;
  llvm::SmallDenseMap<uint32_t, uint32_t> usesOfRuns;
  for (uint32_t part = 0; part < firstOfRun.size(); ++part) {
    if (!llvm::is_contained(pinned, part)) {
      runs += before != uses[part];
      before = uses[part];
      isSteady &= usesOfRuns.try_emplace(firstOfRun[part], uses[part]).first->second == uses[part];
    }
  }
  return runs <= 2 || isSteady;
}

bool LayoutSpaces::isSearched(const planner::Layout &layout, ArrayRef<uint32_t> pinned) const {
  if (areAllSearched()) {
    return true;
  }
  SmallVector<uint32_t> uses(mesh.getSizes().size(), 0);
  for (auto [dim, axes] : llvm::enumerate(layout.dims)) {
    for (uint32_t axis : axes) {
      uses[axis] = uint32_t(dim) + 1;
    }
  }
  for (uint32_t axis : layout.unreduced) {
    uses[axis] = uint32_t(layout.dims.size()) + 1;
  }
  return isSearched(uses, pinned);
}

void LayoutSpaces::add(int64_t rank, ArrayRef<uint32_t> layouts) {
  const planner::LayoutSpace &space = ofRank(rank);
  for (uint32_t layout : layouts) {
    bool isThere = layout < space.inOrder() && isSearched(space.layout(layout));
    if (!isThere && added[rank].insert(layout).second) {
      searchedOfRank.erase(rank);
    }
  }
}

std::vector<uint32_t> LayoutSpaces::searchedOf(int64_t rank, ArrayRef<uint32_t> layouts,
                                               ArrayRef<uint32_t> pinned) {
  const planner::LayoutSpace &space = ofRank(rank);
  const std::set<uint32_t> &given = added[rank];
  auto pick = [&](ArrayRef<uint32_t> free) {
    std::vector<uint32_t> picked;
    llvm::copy_if(layouts, std::back_inserter(picked), [&](uint32_t layout) {
      return isSearched(space.layout(layout), free) || given.count(layout) > 0;
    });
    return picked;
  };
  std::vector<uint32_t> picked = pick({});
  return picked.empty() ? pick(pinned) : picked;
}

const std::vector<uint32_t> &LayoutSpaces::searched(int64_t rank) {
  std::vector<uint32_t> &list = searchedOfRank[rank];
  if (list.empty()) {
    const planner::LayoutSpace &space = ofRank(rank);
    std::set<uint32_t> layouts = added[rank];
    for (uint32_t number = 0; number < space.inOrder(); ++number) {
      if (isSearched(space.layout(number))) {
        layouts.insert(number);
      }
    }
    list.assign(layouts.begin(), layouts.end());
  }
  return list;
}

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
