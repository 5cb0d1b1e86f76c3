//===- HomedValues.cpp - values of a step that have homes in plans --------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HomedValues.h"

#include "weft/Dialect/Weft/IR/ElementTypes.h"
#include "weft/Dialect/Weft/IR/MapBuilders.h"

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

/// Returns the value before reshards and casts.
Value lookThroughReshardsAndCasts(Value value) {
  Value before = lookThroughCast(lookThroughReshards(value));
  return before == value ? value : lookThroughReshardsAndCasts(before);
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

bool isHeldArgument(OpOperand &use) {
  auto call = dyn_cast<CallOp>(use.getOwner());
  auto constrain = use.get().getDefiningOp<ConstrainOp>();
  return call && constrain && isNarrow(getElementTypeOrSelf(use.get())) &&
         llvm::any_of(use.get().getUses(), [&](OpOperand &other) {
           auto otherCall = dyn_cast<CallOp>(other.getOwner());
           return otherCall && otherCall != call && otherCall.getCallee() == call.getCallee() &&
                  other.getOperandNumber() == use.getOperandNumber();
         });
}

SmallVector<GradientSum> findGradientSums(ModuleOp module) {
  SmallVector<GradientSum> sums;
  SymbolTable symbols(module);
  module.walk([&](ObserveOp observe) {
    StringRef name = observe.getName();
    Value value = lookThroughReshardsAndCasts(observe.getValue());
    auto call = value.getDefiningOp<CallOp>();
    if (!name.consume_front("gradient/") || !call) {
      return;
    }
    // The last call continues the sum of the call before it.
    unsigned result = cast<OpResult>(value).getResultNumber();
    for (OpOperand &operand : call->getOpOperands()) {
      auto before = dyn_cast<OpResult>(lookThroughReshards(operand.get()));
      auto previous = before ? dyn_cast<CallOp>(before.getOwner()) : CallOp();
      if (previous && previous.getCallee() == call.getCallee() &&
          before.getResultNumber() == result) {
        sums.push_back({symbols.lookup<VariableOp>(name),
                        symbols.lookup<func::FuncOp>(call.getCallee()), operand.getOperandNumber(),
                        result});
        return;
      }
    }
  });
  return sums;
}

} // namespace weft
