//===- RecomputeCheapValues.cpp - what backward computes again ------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RecomputeCheapValues.h"

#include "weft/Dialect/Weft/IR/AttributeNames.h"
#include "weft/Dialect/Weft/IR/Weft.h"

using namespace mlir;
using namespace weft;

/// Operations for each element of the result: an activation function has about twenty, a norm
/// seven.
static constexpr double kMostFlops = 64;

static bool isUsedIn(Value value, Block &block) {
  return llvm::any_of(value.getUsers(),
                      [&](Operation *user) { return user->getBlock() == &block; });
}

/// Whether memory for `value` grows with the batch.
static bool growsWithBatch(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && elementCount(type.getShape()).perSample != 0;
}

/// What has a sum over a factor may need a collective where that is cut: never cheap.
static bool isCheap(Operation &op) {
  auto computes = dyn_cast<ShardableOpInterface>(op);
  if (!computes || !isPure(&op) || op.getNumResults() != 1 ||
      llvm::any_of(computes.getFactorRule().factors,
                   [](const Factor &factor) { return factor.kind == FactorKind::Reduction; })) {
    return false;
  }
  auto type = cast<RankedTensorType>(op.getResult(0).getType());
  return computes.getCost().flops.perSample <= kMostFlops * elementCount(type.getShape()).perSample;
}

void weft::recomputeCheapValues(Block &forward, Block &backward) {
  // From the last to the first: what a copy reads may then be computed again too.
  for (Operation &op : llvm::reverse(forward.without_terminator())) {
    if (!isCheap(op) || !growsWithBatch(op.getResult(0)) || !isUsedIn(op.getResult(0), backward)) {
      continue;
    }
    auto isKept = [&](Value operand) {
      return isUsedIn(operand, backward) ||
             (isa<BlockArgument>(operand) && !growsWithBatch(operand));
    };
    if (!llvm::all_of(op.getOperands(), isKept)) {
      continue;
    }
    Value value = op.getResult(0);
    Operation *first = nullptr;
    for (Operation *user : value.getUsers()) {
      if (user->getBlock() == &backward && (!first || user->isBeforeInBlock(first))) {
        first = user;
      }
    }
    Operation *copy = OpBuilder(first).clone(op);
    copy->setAttr(kRecomputedAttrName, UnitAttr::get(copy->getContext()));
    value.replaceUsesWithIf(copy->getResult(0), [&](OpOperand &use) {
      return use.getOwner()->getBlock() == &backward;
    });
  }
}
