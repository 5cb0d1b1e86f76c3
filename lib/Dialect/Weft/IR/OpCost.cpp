//===- OpCost.cpp - what ops cost, as functions of the batch --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Dialect/Weft/IR/OpCost.h"

#include "weft/Dialect/Weft/IR/Weft.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace weft {

BatchPolynomial elementCount(ArrayRef<int64_t> shape, double scale) {
  double known = scale;
  bool batch = false;
  for (int64_t size : shape) {
    if (ShapedType::isDynamic(size)) {
      batch = true;
    } else {
      known *= static_cast<double>(size);
    }
  }
  return batch ? BatchPolynomial{0, known} : BatchPolynomial{known, 0};
}

static BatchPolynomial memoryTraffic(Operation *op) {
  BatchPolynomial bytes;
  auto add = [&](Type type) {
    if (auto tensor = dyn_cast<RankedTensorType>(type)) {
      bytes += elementCount(tensor.getShape(), tensor.getElementTypeBitWidth() / 8.0);
    }
  };
  // A sum of squares has the same operand twice, and reads it once.
  llvm::for_each(llvm::SmallSetVector<Value, 4>(op->operand_begin(), op->operand_end()),
                 [&](Value operand) { add(operand.getType()); });
  llvm::for_each(op->getResultTypes(), add);
  return bytes;
}

OpCost elementwiseCost(Operation *op, double flopsPerElement) {
  BatchPolynomial largest;
  auto consider = [&](Type type) {
    if (auto tensor = dyn_cast<RankedTensorType>(type)) {
      BatchPolynomial count = elementCount(tensor.getShape(), flopsPerElement);
      // Sizes with and without the batch are compared at one sample, the smallest batch.
      if (count.at(1) > largest.at(1)) {
        largest = count;
      }
    }
  };
  llvm::for_each(op->getOperandTypes(), consider);
  llvm::for_each(op->getResultTypes(), consider);
  return {largest, memoryTraffic(op)};
}

OpCost iterationCost(Operation *op, double flopsPerPoint) {
  SmallVector<int64_t> sizes;
  for (const Factor &factor : cast<ShardableOpInterface>(op).getFactorRule().factors) {
    sizes.push_back(factor.size);
  }
  return {elementCount(sizes, flopsPerPoint), memoryTraffic(op)};
}

OpCost costOf(Operation *op) {
  auto known = dyn_cast<CostOpInterface>(op);
  return known ? known.getCost() : elementwiseCost(op, /*flopsPerElement=*/1);
}

} // namespace weft
