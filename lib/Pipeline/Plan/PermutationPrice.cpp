//===- PermutationPrice.cpp - the cost of passing shards around -----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PermutationPrice.h"

#include "weft/Dialect/Weft/IR/Sharding.h"

using namespace mlir;

namespace weft {

double pricePermutation(ShardableOpInterface op, const FactorRule &rule, const OpOption &option,
                        LayoutSpaces &spaces, const planner::Price &price) {
  std::optional<unsigned> permuted = findPermutation(rule);
  if (!permuted || option.parts[*permuted] == 1) {
    return 0;
  }
  double cost = 0;
  llvm::SmallDenseSet<Value> known;
  auto add = [&](ValueRange values, ArrayRef<SmallVector<unsigned>> tensors,
                 ArrayRef<uint32_t> layouts, bool isResult) {
    for (auto [value, dims, layout] : llvm::zip_equal(values, tensors, layouts)) {
      const unsigned *dim = llvm::find(dims, *permuted);
      // A value that is several operands is sent only once.
      if (dim == dims.end() || !known.insert(value).second) {
        continue;
      }
      auto type = cast<RankedTensorType>(value.getType());
      const planner::LayoutSpace &space = spaces.of(type);
      double bytes = double(countBytes(type)) / double(space.shards(layout));
      auto times = double(option.parts[*permuted] - (isResult ? 0 : 1));
      cost += times * price(planner::StepKind::Permute,
                            space.layout(layout).dims[dim - dims.begin()], bytes);
    }
  };
  add(op->getOperands(), rule.operands, option.operands, /*isResult=*/false);
  add(op->getResults(), rule.results, option.results, /*isResult=*/true);
  return cost;
}

} // namespace weft
