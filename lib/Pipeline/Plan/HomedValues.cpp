//===- HomedValues.cpp - values of a step that have homes in plans --------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HomedValues.h"

#include "weft/Dialect/Weft/IR/ElementTypes.h"
#include "weft/Dialect/Weft/IR/MapBuilders.h"
#include "weft/Dialect/Weft/IR/StageMarks.h"

using namespace mlir;

namespace weft {
namespace {

/// Returns the value before reshards.
Value lookThroughReshards(Value value) {
  while (auto reshard = value.getDefiningOp<ReshardOp>()) {
    value = reshard.getInput();
  }
  return value;
}

/// Adds the results of calls that `value` is the sum of, apart from reshards and casts: one, or
/// those of stages that have separate sums.
void addSummedResults(Value value, SmallVectorImpl<OpResult> &results) {
  value = lookThroughReshards(value);
  auto map = value.getDefiningOp<MapOp>();
  auto transfer = value.getDefiningOp<TransferOp>();
  if (value.getDefiningOp<CallOp>()) {
    results.push_back(cast<OpResult>(value));
  } else if (transfer) {
    addSummedResults(transfer.getInput(), results);
  } else if (map && (isCast(map) || (markedStageOf(map) && isSum(map)))) {
    for (Value input : map.getInputs()) {
      addSummedResults(input, results);
    }
  }
}

/// Returns the argument from which the last of several calls continues the sum `result`.
std::optional<unsigned> continuedArgument(OpResult result) {
  auto call = cast<CallOp>(result.getOwner());
  for (OpOperand &operand : call->getOpOperands()) {
    auto before = dyn_cast<OpResult>(lookThroughReshards(operand.get()));
    auto previous = before ? dyn_cast<CallOp>(before.getOwner()) : CallOp();
    if (previous && previous.getCallee() == call.getCallee() &&
        before.getResultNumber() == result.getResultNumber()) {
      return operand.getOperandNumber();
    }
  }
  return std::nullopt;
}

/// Returns true if `op` computes the new value of `variable`.
bool updates(Operation *op, VariableOp variable) {
  return llvm::any_of(op->getResults(), [&](Value result) {
    return llvm::any_of(result.getUsers(), [&](Operation *user) {
      auto assign = dyn_cast<AssignOp>(user);
      auto reshard = dyn_cast<ReshardOp>(user);
      return (assign && assign.getVariable() == variable.getSymName()) ||
             (reshard && updates(reshard, variable));
    });
  });
}

} // namespace

WeightCopies::WeightCopies(ModuleOp module) {
  SymbolTable symbols(module);
  module.walk([&](ReadOp read) {
    auto variable = symbols.lookup<VariableOp>(read.getVariable());
    if (variable && variable.getRole() == VariableRole::Parameter) {
      follow(read.getOutput(), variable);
    }
  });
}

/// Quantizing to FP8 rounds too, by the greatest element.
void WeightCopies::follow(Value value, VariableOp variable) {
  for (Operation *user : value.getUsers()) {
    auto map = dyn_cast<MapOp>(user);
    bool isRounding = (map && isCast(map)) || isa<QuantizeOp>(user);
    if (isRounding && isNarrow(getElementTypeOrSelf(user->getResult(0)))) {
      usesOf[variable].copies.push_back(user->getResult(0));
    } else if (isa<ReshardOp>(user)) {
      follow(user->getResult(0), variable);
    } else if (!isa<AmaxOp>(user) && !updates(user, variable)) {
      usesOf[variable].hasOthers = true;
    }
  }
}

ArrayRef<Value> WeightCopies::of(VariableOp variable) const {
  auto found = usesOf.find(variable);
  bool isRead = found == usesOf.end() || found->second.hasOthers;
  return isRead ? ArrayRef<Value>() : ArrayRef<Value>(found->second.copies);
}

std::string WeightCopies::homeOf(VariableOp variable) const {
  return ((of(variable).empty() ? "" : "master/") + variable.getSymName()).str();
}

llvm::DenseSet<Operation *> WeightCopies::constraints() const {
  llvm::DenseSet<Operation *> found;
  for (auto &[variable, uses] : usesOf) {
    for (Value copy : uses.hasOthers ? ArrayRef<Value>() : ArrayRef<Value>(uses.copies)) {
      if (Value held = heldIn(copy)) {
        found.insert(held.getDefiningOp());
      }
    }
  }
  return found;
}

Value WeightCopies::heldIn(Value copy) {
  for (Operation *user : copy.getUsers()) {
    if (isa<ConstrainOp>(user)) {
      return user->getResult(0);
    }
    Value found = isa<ReshardOp>(user) ? heldIn(user->getResult(0)) : Value();
    if (found) {
      return found;
    }
  }
  return {};
}

Operation *heldBehind(Value value) {
  auto transfer = value.getDefiningOp<TransferOp>();
  Value held = transfer ? transfer.getInput() : value;
  bool isCopy = held.getDefiningOp<ConstrainOp>() && isNarrow(getElementTypeOrSelf(held));
  return isCopy || (transfer && held.getDefiningOp<ReadOp>()) ? held.getDefiningOp() : nullptr;
}

bool isHeldArgument(OpOperand &use) {
  auto call = dyn_cast<CallOp>(use.getOwner());
  return call && heldBehind(use.get()) && llvm::any_of(use.get().getUses(), [&](OpOperand &other) {
           auto otherCall = dyn_cast<CallOp>(other.getOwner());
           return otherCall && otherCall != call && otherCall.getCallee() == call.getCallee() &&
                  other.getOperandNumber() == use.getOperandNumber();
         });
}

bool keepsLayout(OpOperand &use) {
  return isHeldArgument(use) || (isa<TransferOp>(use.getOwner()) &&
                                 llvm::any_of(use.getOwner()->getUses(), isHeldArgument));
}

SmallVector<GradientSum> findGradientSums(ModuleOp module) {
  SmallVector<GradientSum> sums;
  SymbolTable symbols(module);
  module.walk([&](ObserveOp observe) {
    StringRef name = observe.getName();
    if (!name.consume_front("gradient/")) {
      return;
    }
    SmallVector<OpResult> results;
    addSummedResults(observe.getValue(), results);
    for (OpResult result : results) {
      auto call = cast<CallOp>(result.getOwner());
      auto function = symbols.lookup<func::FuncOp>(call.getCallee());
      if (std::optional<unsigned> argument = continuedArgument(result)) {
        std::optional<int64_t> stage = markedStageOf(function);
        bool isOther = stage && stage != markedStageOf(observe);
        std::string end = isOther ? "/stage_" + std::to_string(*stage) : "";
        sums.push_back({symbols.lookup<VariableOp>(name), observe.getName().str() + end, function,
                        *argument, result.getResultNumber()});
      }
    }
  });
  return sums;
}

} // namespace weft
