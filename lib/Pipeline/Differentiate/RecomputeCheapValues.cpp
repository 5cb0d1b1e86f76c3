//===- RecomputeCheapValues.cpp - values that backward recomputes ---------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RecomputeCheapValues.h"

#include "weft/Dialect/Weft/IR/AttributeNames.h"
#include "weft/Dialect/Weft/IR/MapBuilders.h"
#include "weft/Dialect/Weft/IR/Weft.h"

#include <map>

using namespace mlir;
using namespace weft;

/// Most operations for each element of the result: an activation function has about twenty, a norm
/// seven.
static constexpr double kMostFlops = 64;
/// Most bytes read for each byte of the result: arithmetic on two tensors reads two, a pool more.
static constexpr double kMostBytes = 3;

/// Returns true if the memory of `value` grows with the batch.
static bool growsWithBatch(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && elementCount(type.getShape()).perSample != 0;
}

static double bytesPerSample(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  return elementCount(type.getShape()).perSample * type.getElementTypeBitWidth() / 8;
}

/// An op that sums over a factor is never cheap, as it needs a collective if the factor is cut.
static bool isCheap(Operation &op) {
  auto computes = dyn_cast<ShardableOpInterface>(op);
  if (!computes || !isPure(&op) || op.getNumResults() != 1 ||
      llvm::any_of(computes.getFactorRule().factors,
                   [](const Factor &factor) { return factor.kind == FactorKind::Reduction; })) {
    return false;
  }
  OpCost cost = costOf(&op);
  auto type = cast<RankedTensorType>(op.getResult(0).getType());
  return cost.flops.perSample <= kMostFlops * elementCount(type.getShape()).perSample &&
         cost.bytes.perSample <= (kMostBytes + 1) * bytesPerSample(op.getResult(0));
}

namespace {

/// Forward and backward: two blocks, or two parts of one.
class Recomputation {
public:
  /// Backward is `begin` and all ops behind it.
  Recomputation(Block &forward, Block::iterator begin, Block::iterator end) : forward(forward) {
    for (Operation &op : llvm::make_range(begin, end)) {
      backward.insert(&op);
    }
    auto module = forward.getParentOp()->getParentOfType<ModuleOp>();
    auto asked = module->getAttrOfType<ArrayAttr>(kRecomputesAttrName);
    for (Operation &op : forward) {
      if (isBackward(&op) || op.getNumResults() != 1) {
        continue;
      }
      auto name = StringAttr::get(op.getContext(), nextNameOf(op));
      if (asked ? llvm::is_contained(asked, name) : isWorthIt(op)) {
        recomputable[&op] = name;
      }
    }
  }

  void run() {
    // From the last to the first, as operands of a copy may then be recomputed too.
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(forward))) {
      if (recomputable.contains(&op) && isUsedInBackward(op.getResult(0))) {
        moveUses(op);
      }
    }
  }

private:
  bool isBackward(Operation *op) const { return backward.contains(op); }
  static bool isCast(Operation &op) {
    return isa<MapOp>(op) && lookThroughCast(op.getResult(0)) != op.getResult(0);
  }

  /// Returns the name of the next op. Casts, which other precisions do not have, count apart.
  std::string nextNameOf(Operation &op) {
    auto place = op.getLoc()->findInstanceOf<NameLoc>();
    std::string name = place ? place.getName().str() : "";
    name += ("/" + (isCast(op) ? "cast" : op.getName().stripDialect()) + "/").str();
    return name + std::to_string(numbers[name]++);
  }

  /// Returns true if recomputing `op` is better than keeping its result.
  bool isWorthIt(Operation &op) const {
    return growsWithBatch(op.getResult(0)) && isCheap(op) &&
           llvm::all_of(op.getOperands(), [&](Value operand) {
             return isAvailable(operand) || isWorthIt(op, operand);
           });
  }

  bool isUsedInBackward(Value value) const {
    return llvm::any_of(value.getUsers(), [&](Operation *user) { return isBackward(user); });
  }

  /// Returns true if backward can have `value` at no cost.
  bool isAvailable(Value value) const {
    if (isUsedInBackward(value)) {
      return true;
    }
    bool isOfThisBlock = !isa<BlockArgument>(value);
    return !growsWithBatch(value) && (!isOfThisBlock || isInOneBlock());
  }

  /// Returns true if recomputing from `operand`, the only large one of `op`, is better than keeping
  /// the result: `operand` can be recomputed itself, or is narrower.
  bool isWorthIt(Operation &op, Value operand) const {
    bool isOnlyLarge = llvm::count_if(op.getOperands(), growsWithBatch) == 1;
    return isOnlyLarge && (recomputable.contains(operand.getDefiningOp()) ||
                           bytesPerSample(operand) < bytesPerSample(op.getResult(0)));
  }

  bool isInOneBlock() const { return isBackward(forward.getTerminator()); }

  /// Makes backward use a copy of `op` in place of its result.
  void moveUses(Operation &op) {
    Value value = op.getResult(0);
    Operation *first = nullptr;
    for (Operation *user : value.getUsers()) {
      if (isBackward(user) && (!first || user->isBeforeInBlock(first))) {
        first = user;
      }
    }
    Operation *copy = OpBuilder(first).clone(op);
    backward.insert(copy);
    copy->setAttr(kRecomputedAttrName, recomputable[&op]);
    value.replaceUsesWithIf(copy->getResult(0),
                            [&](OpOperand &use) { return isBackward(use.getOwner()); });
  }

  Block &forward;
  /// Its ops, with the copies: to ask for the order of ops between insertions takes long.
  llvm::DenseSet<Operation *> backward;
  /// With their names.
  llvm::DenseMap<Operation *, StringAttr> recomputable;
  std::map<std::string, int64_t> numbers;
};

} // namespace

void weft::recomputeCheapValues(Block &forward, Block &backward) {
  Recomputation(forward, backward.begin(), backward.end()).run();
}

void weft::recomputeCheapValues(Operation *end) {
  Block &block = *end->getBlock();
  Recomputation(block, std::next(Block::iterator(end)), block.end()).run();
}
