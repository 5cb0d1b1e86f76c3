//===- DimensionClasses.cpp - dimensions that run along together ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DimensionClasses.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace weft {

DimensionClasses::DimensionClasses(ModuleOp module) {
  module.walk([&](Operation *op) {
    if (auto shardable = dyn_cast<ShardableOpInterface>(op)) {
      joinFactors(shardable);
    } else if (auto reshard = dyn_cast<ReshardOp>(op)) {
      join(reshard.getInput(), reshard.getOutput());
    } else if (auto call = dyn_cast<CallOp>(op)) {
      auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(op, call.getCalleeAttr());
      for (auto [operand, argument] : llvm::zip(call.getOperands(), callee.getArguments())) {
        join(operand, argument);
      }
      Operation *end = callee.getBody().front().getTerminator();
      for (auto [result, value] : llvm::zip(call.getResults(), end->getOperands())) {
        join(result, value);
      }
    }
  });
}

unsigned DimensionClasses::of(Value value, int64_t dim) {
  auto [it, isNew] = numbers.try_emplace({value, dim}, numbers.size());
  return joined.getOrInsertLeaderValue(it->second);
}

void DimensionClasses::join(Value a, int64_t dim, Value b, int64_t otherDim) {
  joined.unionSets(of(a, dim), of(b, otherDim));
}

void DimensionClasses::join(Value a, Value b) {
  if (auto type = dyn_cast<RankedTensorType>(a.getType())) {
    for (int64_t dim = 0; dim < type.getRank(); ++dim) {
      join(a, dim, b, dim);
    }
  }
}

void DimensionClasses::joinFactors(ShardableOpInterface op) {
  FactorRule rule = op.getFactorRule();
  auto joinAll = [&](ValueRange values, ArrayRef<SmallVector<unsigned>> tensors) {
    for (auto [value, dims] : llvm::zip(values, tensors)) {
      for (auto [dim, factor] : llvm::enumerate(dims)) {
        auto [first, firstDim] = *findCarrier(op, rule, factor);
        join(first, firstDim, value, dim);
      }
    }
  };
  joinAll(op->getOperands(), rule.operands);
  joinAll(op->getResults(), rule.results);
}

std::optional<std::pair<Value, int64_t>> findCarrier(Operation *op, const FactorRule &rule,
                                                     unsigned factor) {
  auto find =
      [&](ValueRange values,
          ArrayRef<SmallVector<unsigned>> tensors) -> std::optional<std::pair<Value, int64_t>> {
    for (auto [value, dims] : llvm::zip(values, tensors)) {
      const auto *dim = llvm::find(dims, factor);
      if (dim != dims.end()) {
        return std::pair(value, int64_t(dim - dims.begin()));
      }
    }
    return std::nullopt;
  };
  auto operand = find(op->getOperands(), rule.operands);
  return operand ? operand : find(op->getResults(), rule.results);
}

} // namespace weft
