//===- PermutationPrice.cpp - what pieces that go round cost --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PermutationPrice.h"

using namespace mlir;

namespace weft {

double pricePermutation(ShardableOpInterface op, const OpOption &option, LayoutSpaces &spaces,
                        const planner::Price &price) {
  FactorRule rule = op.getFactorRule();
  std::optional<unsigned> permuted = findPermutation(rule);
  if (!permuted) {
    return 0;
  }
  double cost = 0;
  llvm::SmallDenseSet<Value> known;
  auto add = [&](ValueRange values, ArrayRef<SmallVector<unsigned>> tensors,
                 ArrayRef<uint32_t> layouts, bool isResult) {
    for (auto [value, dims, layout] : llvm::zip_equal(values, tensors, layouts)) {
      const unsigned *dim = llvm::find(dims, *permuted);
      // A value that is several operands is sent once.
      if (dim == dims.end() || !known.insert(value).second) {
        continue;
      }
      const planner::LayoutSpace &space = spaces.of(value.getType());
      auto number = uint32_t(dim - dims.begin());
      const planner::Axes &axes = space.layout(layout).dims[number];
      auto tensor = cast<RankedTensorType>(value.getType());
      double bytes = double(tensor.getNumElements()) *
                     double(llvm::divideCeil(tensor.getElementTypeBitWidth(), 8));
      if (!axes.empty()) {
        auto times = double(space.pieces(layout, number) - (isResult ? 0 : 1));
        cost +=
            times * price(planner::StepKind::Permute, axes, bytes / double(space.pieces(layout)));
      }
    }
  };
  add(op->getOperands(), rule.operands, option.operands, /*isResult=*/false);
  add(op->getResults(), rule.results, option.results, /*isResult=*/true);
  return cost;
}

} // namespace weft
