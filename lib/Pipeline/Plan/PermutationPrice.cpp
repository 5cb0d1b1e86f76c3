//===- PermutationPrice.cpp - what pieces that go round cost --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PermutationPrice.h"

#include "weft/Dialect/Weft/IR/Sharding.h"
#include "weft/Pipeline/ReshardProblem.h"

using namespace mlir;

namespace weft {
namespace {

double bytesOf(Type type, ShardingAttr sharding) {
  auto tensor = cast<RankedTensorType>(type);
  auto elements = getLocalType(withSharding(tensor, sharding)).getNumElements();
  return double(elements) * double(llvm::divideCeil(tensor.getElementTypeBitWidth(), 8));
}

} // namespace

double pricePermutation(ShardableOpInterface op, const OpOption &option,
                        const planner::Price &price) {
  FactorRule rule = op.getFactorRule();
  std::optional<unsigned> permuted = findPermutation(rule);
  if (!permuted) {
    return 0;
  }
  double cost = 0;
  llvm::SmallDenseSet<Value> known;
  auto add = [&](ValueRange values, ArrayRef<SmallVector<unsigned>> tensors,
                 ArrayRef<ShardingAttr> shardings, bool isResult) {
    for (auto [value, dims, sharding] : llvm::zip_equal(values, tensors, shardings)) {
      const unsigned *dim = llvm::find(dims, *permuted);
      bool isCut = dim != dims.end() && !sharding.getDims()[dim - dims.begin()].empty();
      // A value that is several operands is sent once.
      if (!isCut || !known.insert(value).second) {
        continue;
      }
      ArrayAttr axes = sharding.getDims()[dim - dims.begin()];
      auto times = double(sharding.getMesh().getSize(axes) - (isResult ? 0 : 1));
      cost += times * price(planner::StepKind::Permute, toAxes(sharding.getMesh(), axes),
                            bytesOf(value.getType(), sharding));
    }
  };
  add(op->getOperands(), rule.operands, option.operands, /*isResult=*/false);
  add(op->getResults(), rule.results, option.results, /*isResult=*/true);
  return cost;
}

} // namespace weft
