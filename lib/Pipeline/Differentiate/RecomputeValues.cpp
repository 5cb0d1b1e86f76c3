//===- RecomputeValues.cpp - values that backward recomputes --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RecomputeValues.h"

#include "weft/Description/LayerKinds.h"
#include "weft/Dialect/Weft/IR/AttributeNames.h"
#include "weft/Dialect/Weft/IR/MapBuilders.h"
#include "weft/Dialect/Weft/IR/Weft.h"
#include "weft/Pipeline/ReadPlan.h"

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

ActivationEntries::OfLayer ActivationEntries::of(std::optional<int64_t> layer) const {
  OfLayer numbers;
  for (auto [number, entry] : llvm::enumerate(entries)) {
    if (entry.layers.has(layer)) {
      numbers.push_back(unsigned(number));
    }
  }
  return numbers;
}

std::optional<desc::Saving> ActivationEntries::choose(const OfLayer &ofLayer, std::string part,
                                                      std::string name) {
  std::optional<desc::Saving> saving;
  for (unsigned number : ofLayer) {
    const desc::ActivationSpec &entry = entries[number];
    if (desc::matchesPattern(entry.value, part) || desc::matchesPattern(entry.value, name)) {
      saving = entry.saving;
      isMatched[number] = true;
    }
  }
  names.insert({std::move(part), std::move(name)});
  return saving;
}

LogicalResult ActivationEntries::check(MLIRContext *context) const {
  bool isFound = true;
  for (auto [entry, matched] : llvm::zip_equal(entries, isMatched)) {
    if (entry.location.line > 0 && !matched) { // legal_r11
      std::string of = entry.layers.isOpen() ? "the forward pass" : desc::wordsOf(entry.layers);
      emitError(placeOf(context, entry.location))
          << "value: no operation of " << of << " is called '" << entry.value << "', near is '"
          << desc::nearestName(entry.value, {names.begin(), names.end()}) << "'";
      isFound = false;
    }
  }
  return success(isFound);
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
  }

  void choose(ActivationEntries &entries, const ActivationEntries::OfLayer &ofLayer, bool cheap) {
    auto function = cast<SymbolOpInterface>(forward.getParentOp());
    auto module = function->getParentOfType<ModuleOp>();
    auto asked = module->getAttrOfType<ArrayAttr>(kRecomputesAttrName);
    for (Operation &op : forward) {
      if (isBackward(&op) || op.getNumResults() == 0) {
        continue;
      }
      std::string part = partOf(op);
      std::string own = nextNameOf(op, part);
      auto name = StringAttr::get(op.getContext(), function.getName() + "/" + own);
      std::optional<desc::Saving> saving = entries.choose(ofLayer, std::move(part), std::move(own));
      bool isCheaper = cheap && !saving && op.getNumResults() == 1 &&
                       (asked ? llvm::is_contained(asked, name) : isWorthIt(op));
      if (isCheaper || (saving == desc::Saving::Recomputed && canRecompute(op))) {
        recomputable[&op] = name;
      }
    }
  }

  void run() {
    // From the last to the first, as operands of a copy may then be recomputed too.
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(forward))) {
      if (recomputable.contains(&op) &&
          llvm::any_of(op.getResults(), [&](Value result) { return isUsedInBackward(result); })) {
        moveUses(op);
      }
    }
  }

private:
  bool isBackward(Operation *op) const { return backward.contains(op); }
  static bool isCast(Operation &op) {
    return isa<MapOp>(op) && lookThroughCast(op.getResult(0)) != op.getResult(0);
  }
  /// What does not grow with the batch, such as a scale, takes next to no memory.
  static bool canRecompute(Operation &op) {
    return isPure(&op) && llvm::any_of(op.getResults(), growsWithBatch);
  }

  static std::string partOf(Operation &op) {
    auto place = op.getLoc()->findInstanceOf<NameLoc>();
    return place ? desc::planNameOf(place.getName().getValue()) : "";
  }

  /// Returns the name of the next op. Casts, which other precisions do not have, count apart.
  std::string nextNameOf(Operation &op, const std::string &part) {
    std::string name = part;
    name += ("/" + (isCast(op) ? "cast" : op.getName().stripDialect()) + "/").str();
    return name + std::to_string(++numbers[name]);
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

  /// Makes backward use a copy of `op` in place of its results.
  void moveUses(Operation &op) {
    Operation *first = nullptr;
    for (Operation *user : op.getUsers()) {
      if (isBackward(user) && (!first || user->isBeforeInBlock(first))) {
        first = user;
      }
    }
    Operation *copy = OpBuilder(first).clone(op);
    backward.insert(copy);
    copy->setAttr(kRecomputedAttrName, recomputable[&op]);
    op.replaceUsesWithIf(copy->getResults(),
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

void weft::recomputeValues(Block &forward, Block &backward, ActivationEntries &entries,
                           const ActivationEntries::OfLayer &ofLayer) {
  Recomputation recomputation(forward, backward.begin(), backward.end());
  recomputation.choose(entries, ofLayer, /*cheap=*/true);
  recomputation.run();
}

void weft::recomputeValues(Operation *end, ActivationEntries &entries, bool cheap) {
  Block &block = *end->getBlock();
  Recomputation recomputation(block, std::next(Block::iterator(end)), block.end());
  recomputation.choose(entries, entries.of(std::nullopt), cheap);
  recomputation.run();
}
