//===- Counterparts.cpp - pairs the ops of two programs of one model ------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Counterparts.h"

#include "weft/Dialect/Weft/IR/MapBuilders.h"
#include "weft/Dialect/Weft/IR/PaddingMask.h"
#include "weft/Dialect/Weft/IR/Weft.h"

#include <set>

using namespace mlir;

namespace weft::verify {

bool isMovement(Operation *op) {
  return isa<ReshardOp, AllReduceOp, AllGatherOp, ReduceScatterOp, AllToAllOp, PermuteOp, SliceOp,
             PartialOp>(op);
}

bool isCast(Operation *op) {
  return isa<MapOp>(op) && op->getNumResults() == 1 &&
         lookThroughCast(op->getResult(0)) != op->getResult(0);
}

Value originOf(Value value) {
  for (Operation *op = value.getDefiningOp(); op && (isMovement(op) || isCast(op));
       op = value.getDefiningOp()) {
    value = op->getOperand(0);
  }
  return value;
}

StringRef placeOf(Location loc) {
  auto name = loc->findInstanceOf<NameLoc>();
  return name ? name.getName().getValue() : StringRef();
}

LayerNames::LayerNames(const std::vector<int64_t> &layers) {
  for (size_t i = 0; i < layers.size(); ++i) {
    small[layers[i]] = int64_t(i);
    large[int64_t(i)] = layers[i];
  }
}

std::optional<std::string> LayerNames::rename(StringRef name,
                                              const std::map<int64_t, int64_t> &numbers) const {
  constexpr llvm::StringLiteral word = "layers.";
  size_t at = name.find(word);
  if (at == StringRef::npos) {
    return name.str();
  }
  StringRef rest = name.substr(at + word.size());
  int64_t number = 0;
  if (rest.consumeInteger(10, number)) {
    return name.str();
  }
  auto it = numbers.find(number);
  if (it == numbers.end()) {
    return std::nullopt;
  }
  return (name.substr(0, at + word.size()) + llvm::Twine(it->second) + rest).str();
}

std::optional<std::string> LayerNames::toSmall(StringRef name) const { return rename(name, small); }

std::string LayerNames::toLarge(StringRef name) const {
  return rename(name, large).value_or(name.str());
}

namespace {

bool hasTensor(TypeRange types) { return llvm::any_of(types, llvm::IsaPred<RankedTensorType>); }

/// Returns the name of an op's place in the model from its attributes.
StringRef nameIn(Operation *op) {
  if (auto read = dyn_cast<ReadOp>(op)) {
    return read.getVariable();
  }
  if (auto assign = dyn_cast<AssignOp>(op)) {
    return assign.getVariable();
  }
  if (auto observe = dyn_cast<ObserveOp>(op)) {
    return observe.getName();
  }
  if (auto call = dyn_cast<CallOp>(op)) {
    return call.getLabel();
  }
  return "";
}

/// Returns the producer of a value, past ops that only move or round it.
Operation *sourceOf(Value value) { return originOf(value).getDefiningOp(); }

/// Distinguishes ops that differ only by their layer: returns the first name with the number of a
/// layer among the sources of the op's operands.
StringRef nameBefore(Operation *op) {
  for (Value operand : op->getOperands()) {
    Operation *source = sourceOf(operand);
    StringRef name = source ? nameIn(source) : "";
    if (name.contains("layers.")) {
      return name;
    }
  }
  return "";
}

/// Returns the label of a call without its pass: "head.0" for "head.0 backward".
StringRef partOf(CallOp call) { return call.getLabel().split(' ').first; }

/// Collects the labels of calls that use `value`, past ops that only move or round it.
void findCalls(Value value, std::set<StringRef> &parts) {
  for (Operation *user : value.getUsers()) {
    if (auto call = dyn_cast<CallOp>(user)) {
      parts.insert(partOf(call));
    } else if (isMovement(user) || isCast(user)) {
      findCalls(user->getResult(0), parts);
    }
  }
}

/// Distinguishes ops that differ only by their part of each sequence: returns the label of the
/// calls before the op and that of the calls after it, each if it is the only one.
std::string callsAround(Operation *op) {
  std::set<StringRef> before, behind;
  for (Value operand : op->getOperands()) {
    if (auto call = dyn_cast_or_null<CallOp>(sourceOf(operand))) {
      before.insert(partOf(call));
    }
  }
  for (Value result : op->getResults()) {
    findCalls(result, behind);
  }
  std::string text;
  for (const std::set<StringRef> &parts : {before, behind}) {
    text += "|" + (parts.size() == 1 ? parts.begin()->str() : "");
  }
  return text;
}

/// The surroundings by which ops are distinguished.
enum class Detail { Place, Operands, Calls };

using Classes = std::map<std::string, SmallVector<Operation *>>;

/// Groups the ops on tensors of a function by name and place, in order. With `names`, the function
/// is of the large model, and its layers get their numbers in the small one.
Classes classesOf(func::FuncOp function, const LayerNames *names, Detail detail) {
  Classes classes;
  auto add = [&](std::string &key, StringRef name) {
    std::optional<std::string> text = names ? names->toSmall(name) : name.str();
    key += text ? "|" + *text : "";
    return text.has_value();
  };
  for (Operation &op : function.getBody().front()) {
    if (isMovement(&op) || isCast(&op) ||
        (!hasTensor(op.getOperandTypes()) && !hasTensor(op.getResultTypes()) &&
         !isa<func::ReturnOp>(op))) {
      continue;
    }
    std::string key = isPaddingMask(&op) ? "mask" : op.getName().getStringRef().str();
    if (add(key, placeOf(op.getLoc())) && add(key, nameIn(&op)) &&
        (detail == Detail::Place || add(key, nameBefore(&op))) &&
        (detail != Detail::Calls || add(key, callsAround(&op)))) {
      classes[key].push_back(&op);
    }
  }
  return classes;
}

/// Pairs the ops of classes that have the same number of ops in both models, or, with `mayBeFewer`,
/// fewer in the small one.
void pair(const Classes &small, const Classes &large, bool mayBeFewer, Counterparts &counterparts) {
  for (const auto &[key, ops] : small) {
    auto it = large.find(key);
    if (it == large.end() || ops.size() > it->second.size() ||
        (ops.size() < it->second.size() && !mayBeFewer)) {
      continue;
    }
    for (auto [op, counterpart] : llvm::zip(ops, it->second)) {
      counterparts.try_emplace(op, counterpart);
    }
  }
}

} // namespace

bool isOfMask(Operation *op) {
  return isPaddingMask(op) || (isa<IotaOp>(op) && llvm::all_of(op->getUsers(), isPaddingMask));
}

FailureOr<Counterparts> findCounterparts(func::FuncOp ofSmall, func::FuncOp ofLarge,
                                         const LayerNames &names) {
  Counterparts counterparts;
  auto pairBy = [&](Detail detail, bool mayBeFewer) {
    pair(classesOf(ofSmall, nullptr, detail), classesOf(ofLarge, &names, detail), mayBeFewer,
         counterparts);
  };
  pairBy(Detail::Place, false);
  // The operands of an op tell its layer, and the calls around it its part of a sequence.
  pairBy(Detail::Operands, false);
  pairBy(Detail::Calls, false);
  pairBy(Detail::Operands, true);
  for (const auto &[key, ops] : classesOf(ofSmall, nullptr, Detail::Place)) {
    for (Operation *op : ops) {
      if (!counterparts.contains(op) && !isOfMask(op)) {
        return op->emitError("has no counterpart in @") << ofLarge.getSymName();
      }
    }
  }
  return counterparts;
}

} // namespace weft::verify
