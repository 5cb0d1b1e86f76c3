//===- BackwardParts.cpp - input gradients apart from weight gradients -----===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Dialect/Weft/IR/BackwardParts.h"

#include "weft/Dialect/Weft/IR/AttributeNames.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace weft {

/// Finds the parts of one function.
class BackwardParts::Cutter {
public:
  Cutter(BackwardParts &all, FunctionParts &parts)
      : all(all), parts(parts), body(parts.function.getBody().front()) {}

  void run(const llvm::BitVector &needed) {
    findNeeded(needed);
    for (Operation &op : body.without_terminator()) {
      if (!isShared(&op) && !isOfFirst(&op)) {
        isOfSecond.insert(&op);
      }
    }
    for (Operation &op : body.without_terminator()) {
      // What nobody waits for at all has no first part.
      if (needed.any() && isOfSecond.contains(&op) && isBetterInFirst(&op)) {
        isOfSecond.erase(&op);
        inFirst.insert(&op);
      }
    }
    list();
  }

private:
  bool isOfFirst(Operation *op) const { return inFirst.contains(op); }

  /// Returns the parts of a call that has something in both; else null.
  const FunctionParts *partsOf(Operation *op) const { return parts.calls.lookup(op); }

  /// Returns true if the op is computed of no tensor: no part needs to keep its results.
  static bool isShared(Operation *op) {
    return !isa<CallOp>(op) && isPure(op) &&
           llvm::none_of(op->getOperandTypes(), llvm::IsaPred<ShapedType>);
  }

  void findNeeded(const llvm::BitVector &needed) {
    llvm::DenseSet<Value> values;
    for (unsigned result : needed.set_bits()) {
      values.insert(body.getTerminator()->getOperand(result));
    }
    for (Operation &op : llvm::reverse(body.without_terminator())) {
      llvm::BitVector own(op.getNumResults());
      for (OpResult result : op.getResults()) {
        own[result.getResultNumber()] = values.contains(result);
      }
      if (own.none() || isShared(&op)) {
        continue;
      }
      inFirst.insert(&op);
      llvm::BitVector operands(op.getNumOperands(), true);
      if (isa<CallOp>(op)) {
        const FunctionParts &callee = all.of(all.calleeOf(&op), own);
        if (!callee.second.empty()) {
          parts.calls[&op] = &callee;
          operands = callee.firstArguments;
        }
      }
      for (unsigned operand : operands.set_bits()) {
        values.insert(op.getOperand(operand));
      }
    }
  }

  /// Returns true if the first part has the value.
  bool isInFirst(Value value) const {
    Operation *op = value.getDefiningOp();
    if (!op || isShared(op)) {
      return true;
    }
    const FunctionParts *callee = partsOf(op);
    return isOfFirst(op) &&
           (!callee || callee->firstResults[cast<OpResult>(value).getResultNumber()]);
  }

  /// Returns true if `use` is one of the second part.
  bool isUseOfSecond(OpOperand &use) const {
    const FunctionParts *callee = partsOf(use.getOwner());
    return callee ? callee->secondArguments[use.getOperandNumber()]
                  : isOfSecond.contains(use.getOwner());
  }

  static double bytesOf(Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    return type ? double(type.getNumElements()) * type.getElementTypeBitWidth() / 8 : 0;
  }

  /// Returns true if the first part should do an op that only the second one needs.
  bool isBetterInFirst(Operation *op) {
    if (!all.doesLittle(op) ||
        !llvm::all_of(op->getOperands(), [&](Value operand) { return isInFirst(operand); })) {
      return false;
    }
    double before = 0, after = 0;
    for (Value operand : llvm::SmallSetVector<Value, 4>(op->operand_begin(), op->operand_end())) {
      Operation *definition = operand.getDefiningOp();
      bool isOnlyHere = llvm::all_of(operand.getUses(), [&](OpOperand &use) {
        return use.getOwner() == op || !isUseOfSecond(use);
      });
      before += isOnlyHere && !(definition && isShared(definition)) ? bytesOf(operand) : 0;
    }
    for (Value result : op->getResults()) {
      bool isUsed =
          llvm::any_of(result.getUses(), [&](OpOperand &use) { return isUseOfSecond(use); });
      after += isUsed ? bytesOf(result) : 0;
    }
    return before > 0 && 2 * after <= before;
  }

  /// Adds what a part needs for a value that one of its ops uses.
  void use(Value value, llvm::SetVector<Operation *> &part, llvm::BitVector &arguments) {
    Operation *op = value.getDefiningOp();
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      arguments.set(argument.getArgNumber());
    } else if (isShared(op)) {
      for (Value operand : op->getOperands()) {
        use(operand, part, arguments);
      }
      part.insert(op);
    } else if (&part == &parts.second && isInFirst(value)) {
      parts.kept.insert(value);
    }
  }

  void list() {
    parts.firstArguments.resize(body.getNumArguments());
    parts.secondArguments.resize(body.getNumArguments());
    for (Operation &op : body.without_terminator()) {
      const FunctionParts *callee = partsOf(&op);
      for (OpOperand &operand : op.getOpOperands()) {
        const unsigned number = operand.getOperandNumber();
        if (isOfFirst(&op) && (!callee || callee->firstArguments[number])) {
          use(operand.get(), parts.first, parts.firstArguments);
        }
        if (callee ? callee->secondArguments[number] : isOfSecond.contains(&op)) {
          use(operand.get(), parts.second, parts.secondArguments);
        }
      }
      if (isOfFirst(&op)) {
        parts.first.insert(&op);
      }
      if (callee || isOfSecond.contains(&op)) {
        parts.second.insert(&op);
      }
    }
    Operation *end = body.getTerminator();
    parts.firstResults.resize(end->getNumOperands());
    for (OpOperand &operand : end->getOpOperands()) {
      if (!inFirst.empty() && isInFirst(operand.get())) {
        parts.firstResults.set(operand.getOperandNumber());
        use(operand.get(), parts.first, parts.firstArguments);
      }
    }
  }

  BackwardParts &all;
  FunctionParts &parts;
  Block &body;
  llvm::DenseSet<Operation *> inFirst, isOfSecond;
};

bool BackwardParts::doesLittle(Operation *op) {
  if (isa<CallOp>(op)) {
    func::FuncOp callee = calleeOf(op);
    auto found = littleFunctions.find(callee);
    if (found == littleFunctions.end()) {
      bool is = llvm::all_of(callee.getBody().front().without_terminator(),
                             [&](Operation &inner) { return doesLittle(&inner); });
      found = littleFunctions.try_emplace(callee, is).first;
    }
    return found->second;
  }
  auto computes = dyn_cast<ShardableOpInterface>(op);
  if (!computes || !isPure(op)) {
    return false;
  }
  double points = 1, largest = 0;
  for (const Factor &factor : computes.getFactorRule().factors) {
    points *= double(factor.size);
  }
  for (Type type : llvm::concat<Type>(SmallVector<Type>(op->getOperandTypes()),
                                      SmallVector<Type>(op->getResultTypes()))) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    largest = std::max(largest, tensor ? double(tensor.getNumElements()) : 0);
  }
  return points <= largest;
}

const FunctionParts &BackwardParts::of(func::FuncOp function, const llvm::BitVector &needed) {
  std::vector<bool> key(needed.size());
  for (unsigned result : needed.set_bits()) {
    key[result] = true;
  }
  auto &parts = known[{function, key}];
  if (!parts) {
    auto made = std::make_unique<FunctionParts>();
    made->function = function;
    Cutter(*this, *made).run(needed);
    parts = std::move(made);
  }
  return *parts;
}

llvm::BitVector findAwaitedResults(CallOp first, const SymbolTable &symbols) {
  llvm::BitVector awaited(first->getNumResults());
  for (OpResult result : first->getResults()) {
    SmallVector<Operation *> open(result.getUsers());
    llvm::DenseSet<Operation *> seen;
    while (!open.empty()) {
      Operation *user = open.pop_back_val();
      auto call = dyn_cast<CallOp>(user);
      auto callee = call ? symbols.lookup<func::FuncOp>(call.getCallee()) : nullptr;
      if (isa<TransferOp>(user) || (callee && callee->hasAttr(kMicroBatchAttrName) &&
                                    call.getCallee() != first.getCallee())) {
        awaited.set(result.getResultNumber());
        break;
      }
      if (!call && seen.insert(user).second) {
        llvm::append_range(open, user->getUsers());
      }
    }
  }
  return awaited;
}

} // namespace weft
