//===- AlikeMicroBatches.cpp - ops that repeat with each micro-batch -------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AlikeMicroBatches.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace weft::meaning {

namespace {

/// True if the first operand of `op`, a call, is the constant `number`.
bool isNumbered(Operation *op, size_t number) {
  APInt constant;
  return isa<CallOp>(op) && op->getNumOperands() > 0 &&
         matchPattern(op->getOperand(0), m_ConstantInt(&constant)) && constant == uint64_t(number);
}

/// The ops of each micro-batch. Those of the last may include others that come after it.
std::vector<SmallVector<Operation *>> collect(CallOp first) {
  std::vector<SmallVector<Operation *>> ops(1);
  llvm::DenseSet<Operation *> own;
  for (Operation &op : llvm::make_range(Block::iterator(first), first->getBlock()->end())) {
    if (isNumbered(&op, ops.size())) {
      ops.emplace_back();
      own.clear();
    }
    bool isOwn = isNumbered(&op, ops.size() - 1) ||
                 llvm::any_of(op.getOperands(),
                              [&](Value value) { return own.contains(value.getDefiningOp()); });
    if (isOwn) {
      own.insert(&op);
      ops.back().push_back(&op);
    }
  }
  return ops;
}

/// True if two ops do the same with other operands.
bool areAlike(Operation *one, Operation *other) {
  auto call = dyn_cast<CallOp>(one), otherCall = dyn_cast<CallOp>(other);
  if (call && otherCall) {
    return call.getCallee() == otherCall.getCallee() &&
           one->getNumOperands() == other->getNumOperands();
  }
  return OperationEquivalence::isEquivalentTo(
      one, other, OperationEquivalence::ignoreValueEquivalence, /*markEquivalent=*/nullptr,
      OperationEquivalence::IgnoreLocations);
}

/// Compares the micro-batches.
class Matching {
public:
  explicit Matching(AlikeMicroBatches &found) : found(found) {
    for (auto [number, ops] : llvm::enumerate(found.ops)) {
      for (auto [place, op] : llvm::enumerate(ops)) {
        places[op] = {number, place};
      }
    }
  }

  bool run();

private:
  /// Where a result of an op stands, if it is of a micro-batch.
  struct Place {
    size_t number, op;
    bool operator==(const Place &) const = default;
  };
  std::optional<Place> placeOf(Value value) const {
    auto place = places.find(value.getDefiningOp());
    return place == places.end() ? std::nullopt : std::optional(place->second);
  }
  static unsigned resultOf(Value value) { return cast<OpResult>(value).getResultNumber(); }

  bool matchOperand(OpOperand &operand, size_t number, size_t op);
  bool addTotal(size_t op, unsigned result, Value start);
  bool isOnlyCarried() const;

  AlikeMicroBatches &found;
  llvm::DenseMap<Operation *, Place> places;
};

bool Matching::addTotal(size_t op, unsigned result, Value start) {
  auto known = llvm::find_if(found.totals, [&](const RunningTotal &total) {
    return total.op == op && total.result == result;
  });
  if (known != found.totals.end()) {
    return known->start == start;
  }
  found.totals.push_back({op, result, start});
  return true;
}

/// Compares an operand of micro-batch `number`, 1 or more, with that of the one before.
bool Matching::matchOperand(OpOperand &operand, size_t number, size_t op) {
  Value value = operand.get();
  Value before = found.ops[number - 1][op]->getOperand(operand.getOperandNumber());
  std::optional<Place> place = placeOf(value), placeBefore = placeOf(before);
  if (place && place->number == number) {
    return placeBefore == Place{number - 1, place->op} && resultOf(value) == resultOf(before);
  }
  if (place && place->number == number - 1 && number == 1) {
    return !placeBefore && addTotal(place->op, resultOf(value), before);
  }
  if (place && place->number == number - 1) {
    return placeBefore == Place{number - 2, place->op} && resultOf(value) == resultOf(before);
  }
  if (!place && value == before) {
    number == 1 ? void(found.shared.insert(value)) : void();
    return true;
  }
  bool isNumber = operand.getOperandNumber() == 0 && isNumbered(operand.getOwner(), number) &&
                  isNumbered(found.ops[number - 1][op], number - 1);
  found.number = number == 1 ? value : found.number;
  return isNumber;
}

/// True if no other op reads a result, but for the totals of the last micro-batch.
bool Matching::isOnlyCarried() const {
  llvm::DenseSet<Value> totals;
  for (const RunningTotal &total : found.totals) {
    totals.insert(found.ops.back()[total.op]->getResult(total.result));
  }
  return llvm::all_of(found.ops, [&](ArrayRef<Operation *> ops) {
    return llvm::all_of(ops, [&](Operation *op) {
      return llvm::all_of(op->getUses(), [&](OpOperand &use) {
        return places.contains(use.getOwner()) || totals.contains(use.get());
      });
    });
  });
}

bool Matching::run() {
  const size_t size = found.ops.front().size();
  for (size_t number = 1; number < found.ops.size(); ++number) {
    if (found.ops[number].size() != size) {
      return false;
    }
    for (size_t op = 0; op < size; ++op) {
      Operation *own = found.ops[number][op];
      if (!areAlike(found.ops[number - 1][op], own) ||
          !llvm::all_of(own->getOpOperands(),
                        [&](OpOperand &operand) { return matchOperand(operand, number, op); })) {
        return false;
      }
    }
  }
  return found.number && !found.shared.contains(found.number) && isOnlyCarried();
}

} // namespace

std::optional<AlikeMicroBatches> findMicroBatches(CallOp first) {
  if (!isNumbered(first, 0)) {
    return std::nullopt;
  }
  AlikeMicroBatches found;
  found.ops = collect(first);
  if (found.ops.size() < 2 || found.ops.back().size() < found.ops.front().size()) {
    return std::nullopt;
  }
  found.ops.back().truncate(found.ops.front().size());
  return Matching(found).run() ? std::optional(std::move(found)) : std::nullopt;
}

} // namespace weft::meaning
