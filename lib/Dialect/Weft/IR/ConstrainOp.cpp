//===- ConstrainOp.cpp - pinned shardings of values -----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Dialect/Weft/IR/Sharding.h"

using namespace mlir;
using namespace weft;

/// constrain_c1
static LogicalResult verifyDims(ConstrainOp op) {
  int64_t rank = cast<RankedTensorType>(op.getInput().getType()).getRank();
  if (static_cast<int64_t>(op.getDims().size()) != rank) {
    return op.emitOpError() << "constrains " << op.getDims().size() << " dimensions, expected the "
                            << rank << " of " << op.getInput().getType();
  }
  SmallVector<Attribute> seen;
  for (Attribute dim : op.getDims()) {
    auto axes = dyn_cast<ArrayAttr>(dim);
    bool isNamed = axes && llvm::all_of(axes, llvm::IsaPred<StringAttr>);
    if (!isNamed && !isa<UnitAttr>(dim)) {
      return op.emitOpError() << "expected the names of axes, or unit, for each dimension, got "
                              << dim;
    }
    for (Attribute axis : axes ? axes.getValue() : ArrayRef<Attribute>()) {
      if (llvm::is_contained(seen, axis)) {
        return op.emitOpError() << "axis " << axis << " occurs twice";
      }
      seen.push_back(axis);
    }
  }
  return success();
}

LogicalResult ConstrainOp::verify() {
  if (failed(verifyDims(*this))) {
    return failure();
  }
  if (static_cast<int64_t>(getPriority()) < 0) { // constrain_c2
    return emitOpError() << "expected a priority of at least 0, got "
                         << static_cast<int64_t>(getPriority());
  }
  ShardingAttr sharding = getSharding(getOutput().getType());
  if (!sharding) {
    return success();
  }
  for (auto [number, dim, axes] : llvm::enumerate(getDims(), sharding.getDims())) {
    if (isa<ArrayAttr>(dim) && dim != axes) { // constrain_c3
      return emitOpError() << "has dimension " << number << " cut over " << axes << ", expected "
                           << dim;
    }
  }
  return success();
}

FactorRule ConstrainOp::getFactorRule() {
  std::string dims = letters(cast<RankedTensorType>(getInput().getType()).getRank());
  return makeFactorRule(*this, {dims}, {dims});
}

bool ConstrainOp::isAdditiveIn(ArrayRef<unsigned>) { return true; }

OpCost ConstrainOp::getCost() { return {}; }

LogicalResult ConstrainOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                                         SmallVectorImpl<Value> &operandGradients) {
  Value gradient = resultGradients[0];
  operandGradients[0] = ConstrainOp::create(builder, getLoc(), gradient.getType(), gradient,
                                            getDims(), getPriority());
  return success();
}
