//===- ValuePlaces.cpp - where values of functions go ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ValuePlaces.h"

#include "weft/Dialect/Weft/IR/Sharding.h"
#include "weft/Dialect/Weft/IR/Weft.h"

#include "mlir/IR/OperationSupport.h"

using namespace mlir;

namespace weft {

void ValuePlaces::add(func::FuncOp function) {
  if (function.isExternal()) {
    return;
  }
  for (Operation &op : function.getOps()) {
    numbers.try_emplace(&op, numbers.size());
  }
  // From the last op on: the places that an op's result goes to are then known, and `of` never
  // follows more than one op.
  for (Operation &op : llvm::reverse(function.getBody().front())) {
    if (isSimple(&op)) {
      of(op.getResult(0));
    }
  }
}

bool ValuePlaces::isSimple(Operation *op) {
  return !isa<CallOp>(op) && op->getNumResults() == 1 &&
         llvm::count_if(op->getOperandTypes(), llvm::IsaPred<RankedTensorType>) <= 1;
}

uint32_t ValuePlaces::of(Value value) {
  if (auto it = known.find(value); it != known.end()) {
    return it->second;
  }
  std::vector<std::string> places;
  for (OpOperand &use : value.getUses()) {
    places.push_back(placeOf(use));
  }
  llvm::sort(places);
  auto [found, isNew] =
      placesByText.try_emplace(llvm::join(places, "; "), uint32_t(placesByText.size()));
  if (isNew) {
    texts.push_back(found->first());
  }
  uint32_t number = found->second;
  known[value] = number;
  return number;
}

std::string ValuePlaces::sourceOf(Value value) const {
  auto result = cast<OpResult>(value);
  return nameOf(result.getOwner()) + " #" + std::to_string(result.getResultNumber());
}

std::string ValuePlaces::placeOf(OpOperand &use) {
  ++followed;
  Operation *op = use.getOwner();
  if (auto assign = dyn_cast<AssignOp>(op)) {
    RankedTensorType type = symbols.lookup<VariableOp>(assign.getVariable()).getTensorType();
    if (getSharding(type)) {
      std::string text;
      llvm::raw_string_ostream(text) << "variable " << type;
      return text;
    }
  }
  if (isSimple(op)) {
    return "kind " + std::to_string(kindOf(op)) + " to " + std::to_string(of(op->getResult(0)));
  }
  if (auto call = dyn_cast<CallOp>(op)) {
    auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
    std::string further = placesInside(callee.getArgument(use.getOperandNumber()));
    if (!further.empty()) {
      return further;
    }
  }
  return nameOf(op) + " #" + std::to_string(use.getOperandNumber());
}

/// Returns the places of an argument that a function only passes on to calls, as that of a
/// micro-batch does with the weights of all layers; else nothing.
std::string ValuePlaces::placesInside(BlockArgument argument) {
  bool isPassedOn = !argument.use_empty() &&
                    llvm::all_of(argument.getUsers(),
                                 [&](Operation *user) { return holds(user) && isa<CallOp>(user); });
  return isPassedOn ? texts[of(argument)].str() : "";
}

std::string ValuePlaces::nameOf(Operation *op) const {
  auto call = dyn_cast<CallOp>(op);
  return call ? call.getCallee().str() : "op " + std::to_string(numbers.lookup(op));
}

/// Returns true if two ops are equal but for operands and locations.
static bool areAlike(Operation *a, Operation *b) {
  DenseMap<Value, Value> inA;
  for (auto [ofA, ofB] : llvm::zip(a->getOperands(), b->getOperands())) {
    inA[ofA] = ofB;
  }
  return OperationEquivalence::isEquivalentTo(
      a, b, [&](Value ofA, Value ofB) { return success(inA.lookup(ofA) == ofB); },
      [&](Value ofA, Value ofB) { inA[ofA] = ofB; }, OperationEquivalence::IgnoreLocations);
}

uint32_t ValuePlaces::kindOf(Operation *op) {
  auto &alike = kinds[OperationEquivalence::computeHash(op, OperationEquivalence::ignoreHashValue,
                                                        OperationEquivalence::ignoreHashValue,
                                                        OperationEquivalence::IgnoreLocations)];
  for (auto [other, kind] : alike) {
    if (areAlike(op, other)) {
      return kind;
    }
  }
  alike.push_back({op, numKinds});
  return numKinds++;
}

} // namespace weft
