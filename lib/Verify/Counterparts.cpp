//===- Counterparts.cpp - pairs the ops of two programs of one model ------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Counterparts.h"

#include "weft/Dialect/Weft/IR/AttributeNames.h"
#include "weft/Dialect/Weft/IR/MapBuilders.h"
#include "weft/Dialect/Weft/IR/PaddingMask.h"
#include "weft/Dialect/Weft/IR/StageMarks.h"
#include "weft/Dialect/Weft/IR/Weft.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <set>

using namespace mlir;

namespace weft::verify {

bool isMovement(Operation *op) {
  return isa<ReshardOp, AllReduceOp, AllGatherOp, ReduceScatterOp, AllToAllOp, PermuteOp, SliceOp,
             PartialOp>(op);
}

bool isOfMask(Operation *op) {
  return isPaddingMask(op) || (isa<IotaOp>(op) && llvm::all_of(op->getUsers(), isPaddingMask));
}

bool isCast(Operation *op) {
  return isa<MapOp>(op) && op->getNumResults() == 1 &&
         lookThroughCast(op->getResult(0)) != op->getResult(0);
}

bool isResize(Operation *op) {
  return isa<PadOp, ExtractOp>(op) && op->hasAttr(kOfPaddingAttrName);
}

/// Returns true if an op's result has the elements of its first operand, elsewhere, rounded, or
/// with padding.
static bool keepsElements(Operation *op) { return isMovement(op) || isCast(op) || isResize(op); }

Value originOf(Value value) {
  for (Operation *op = value.getDefiningOp(); op && keepsElements(op); op = value.getDefiningOp()) {
    value = op->getOperand(0);
  }
  return value;
}

StringRef placeOf(Location loc) {
  auto name = loc->findInstanceOf<NameLoc>();
  return name ? name.getName().getValue() : StringRef();
}

std::string describe(Operation *op) {
  StringRef place = placeOf(op->getLoc());
  return (place + (place.empty() ? "(" : " (") + op->getName().stripDialect() + ")").str();
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

/// Returns the label of a call without its pass: "head.0" for "head.0 backward".
StringRef partOf(CallOp call) { return call.getLabel().split(' ').first; }

/// Collects the labels of calls that use `value`, past ops that only move, round or resize it.
void findCalls(Value value, std::set<StringRef> &parts) {
  for (Operation *user : value.getUsers()) {
    if (auto call = dyn_cast<CallOp>(user)) {
      parts.insert(partOf(call));
    } else if (keepsElements(user)) {
      findCalls(user->getResult(0), parts);
    }
  }
}

/// Returns the label of the call whose result `transfer` brings to another call; "" if it brings it
/// to no call, as a gradient's sum behind the last micro-batch, which has another number in the
/// small model.
StringRef labelOf(TransferOp transfer) {
  auto call = originOf(transfer.getInput()).getDefiningOp<CallOp>();
  std::set<StringRef> users;
  findCalls(transfer.getOutput(), users);
  return call && !users.empty() ? call.getLabel() : "";
}

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
  if (auto transfer = dyn_cast<TransferOp>(op)) {
    return labelOf(transfer);
  }
  return "";
}

/// Distinguishes ops of roots by pipeline stage: returns the op's, or a transfer's two.
std::string stagesOf(Operation *op) {
  if (auto transfer = dyn_cast<TransferOp>(op)) {
    return (llvm::Twine(transfer.getFrom()) + "-" + llvm::Twine(transfer.getTo())).str();
  }
  std::optional<int64_t> stage = markedStageOf(op);
  return stage ? std::to_string(*stage) : "";
}

/// Returns the producer of a value, past ops that only move, round or resize it.
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

/// Distinguishes ops whose result is stored or observed: returns the name, past ops that only move,
/// round or resize the result.
StringRef nameBehind(Value value) {
  for (Operation *user : value.getUsers()) {
    StringRef name = keepsElements(user)          ? nameBehind(user->getResult(0))
                     : user->getNumResults() == 0 ? nameIn(user)
                                                  : "";
    if (!name.empty()) {
      return name;
    }
  }
  return "";
}

StringRef nameBehind(Operation *op) {
  return op->getNumResults() > 0 ? nameBehind(op->getResult(0)) : "";
}

/// Writes what `type` holds, without sizes and precisions.
void printForm(Type type, llvm::raw_ostream &os) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  os << (isa<FloatType>(getElementTypeOrSelf(type)) ? 'f' : 'i')
     << (tensor ? tensor.getRank() : -1);
}

/// Returns true if `attribute` says what an op does, whatever its layer, its sizes and its
/// precision.
bool saysWhat(Attribute attribute) {
  if (auto text = dyn_cast<StringAttr>(attribute)) {
    return !text.getValue().contains("layers.");
  }
  auto list = dyn_cast<ArrayAttr>(attribute);
  return list && !list.empty() && llvm::all_of(list, llvm::IsaPred<AffineMapAttr>);
}

/// Returns what distinguishes ops of one kind in one place: the ranks of their values, attributes,
/// and the scalar ops of their regions other than casts and constants.
std::string formOf(Operation *op) {
  std::string text;
  llvm::raw_string_ostream os(text);
  for (TypeRange types : {TypeRange(op->getOperandTypes()), TypeRange(op->getResultTypes())}) {
    os << '|';
    for (auto [number, type] : llvm::enumerate(types)) {
      // A batch of matrices of all layers has fewer of them in the small model.
      bool isAsBefore = isa<ConcatOp, SplitOp>(op) && number > 0 && type == types[number - 1];
      if (!isAsBefore) {
        printForm(type, os);
      }
    }
  }
  for (NamedAttribute attribute : op->getAttrs()) {
    if (saysWhat(attribute.getValue())) {
      os << '|' << attribute.getValue();
    }
  }
  for (Region &region : op->getRegions()) {
    region.walk([&](Operation *scalar) {
      if (!isa<arith::ConstantOp, arith::ExtFOp, arith::TruncFOp>(scalar)) {
        os << '|' << scalar->getName();
      }
    });
  }
  return text;
}

/// The surroundings by which ops are distinguished: each with those before.
enum class Detail { Place, Operands, Calls, Uses };

using Classes = std::map<std::string, SmallVector<Operation *>>;

/// Pairs the ops of a function of the small model with those of one of the large model.
class Pairing {
public:
  Pairing(func::FuncOp ofSmall, func::FuncOp ofLarge, const LayerNames &names)
      : ofSmall(ofSmall), ofLarge(ofLarge), names(names) {}

  /// Pairs ops that have no counterparts yet, in order, if they are distinguished alike and there
  /// are as many in both models, or, with `mayBeFewer`, fewer in the small one.
  void pair(Detail detail, bool hasForm, bool mayBeFewer) {
    Classes large = classesOf(ofLarge, &names, detail, hasForm);
    for (const auto &[key, ops] : classesOf(ofSmall, nullptr, detail, hasForm)) {
      auto it = large.find(key);
      if (it == large.end() || ops.size() > it->second.size() ||
          (ops.size() < it->second.size() && !mayBeFewer)) {
        continue;
      }
      for (auto [op, counterpart] : llvm::zip(ops, it->second)) {
        counterparts[op] = counterpart;
        taken.insert(counterpart);
      }
    }
  }

  /// Pairs masks whose uses are counterparts, the last masks first. Their places can differ: a mask
  /// has the place of what it masks, which with other precisions may be a cast.
  void pairMasksByUse() {
    for (Operation &op : llvm::reverse(ofSmall.getBody().front())) {
      if (!isPaddingMask(&op) || counterparts.contains(&op)) {
        continue;
      }
      for (OpOperand &use : op.getUses()) {
        Operation *like = counterparts.lookup(use.getOwner());
        Operation *mask = like && like->getNumOperands() == use.getOwner()->getNumOperands()
                              ? sourceOf(like->getOperand(use.getOperandNumber()))
                              : nullptr;
        if (mask && isPaddingMask(mask) && formOf(mask) == formOf(&op) &&
            taken.insert(mask).second) {
          counterparts[&op] = mask;
          pairNumbers(op.getOperand(1), mask->getOperand(1));
          break;
        }
      }
    }
  }

  /// Returns true if `op` computes something of weights alone: in another precision the large model
  /// may do so once for all that read it, or outside of the function.
  static bool isOfWeights(Operation *op) {
    return isa<ReadOp>(op) ||
           (hasTensor(op->getOperandTypes()) && llvm::all_of(op->getOperands(), [](Value operand) {
              Operation *definition = operand.getDefiningOp();
              return definition && isOfWeights(definition);
            }));
  }

  /// Returns an op of the small model that has no counterpart, or null.
  Operation *findUnpaired() const {
    for (const auto &[key, ops] : classesOf(ofSmall, nullptr, Detail::Place, false)) {
      for (Operation *op : ops) {
        if (!isOfMask(op) && !isResize(op) && !isOfWeights(op)) {
          return op;
        }
      }
    }
    return nullptr;
  }

  Counterparts take() { return std::move(counterparts); }

private:
  /// Groups the ops on tensors of a function that have no counterparts, in order. With `from`, the
  /// function is of the large model, and its layers get their numbers in the small one.
  Classes classesOf(func::FuncOp function, const LayerNames *from, Detail detail,
                    bool hasForm) const {
    Classes classes;
    auto add = [&](std::string &key, StringRef name) {
      std::optional<std::string> text = from ? from->toSmall(name) : name.str();
      key += text ? "|" + *text : "";
      return text.has_value();
    };
    for (Operation &op : function.getBody().front()) {
      if (isMovement(&op) || isCast(&op) || counterparts.contains(&op) || taken.contains(&op) ||
          (isPaddingMask(&op) && !hasForm) ||
          (!hasTensor(op.getOperandTypes()) && !hasTensor(op.getResultTypes()) &&
           !isa<func::ReturnOp>(op))) {
        continue;
      }
      std::string key = isPaddingMask(&op) ? "mask" : op.getName().getStringRef().str();
      key += "|" + stagesOf(&op);
      if (add(key, placeOf(op.getLoc())) && add(key, nameIn(&op)) &&
          (!hasForm || add(key, formOf(&op))) &&
          (detail == Detail::Place || add(key, nameBefore(&op))) &&
          (detail < Detail::Calls || add(key, callsAround(&op))) &&
          (detail < Detail::Uses || add(key, nameBehind(&op)))) {
        classes[key].push_back(&op);
      }
    }
    return classes;
  }

  /// Pairs the ops that number the elements of two masks.
  void pairNumbers(Value small, Value large) {
    Operation *numbers = sourceOf(small), *like = sourceOf(large);
    if (numbers && like && numbers->getName() == like->getName() &&
        !counterparts.contains(numbers)) {
      counterparts[numbers] = like;
      taken.insert(like);
    }
  }

  func::FuncOp ofSmall, ofLarge;
  const LayerNames &names;
  Counterparts counterparts;
  DenseSet<Operation *> taken;
};

} // namespace

FailureOr<Counterparts> findCounterparts(func::FuncOp ofSmall, func::FuncOp ofLarge,
                                         const LayerNames &names) {
  Pairing pairing(ofSmall, ofLarge, names);
  // Other precisions and numbers of layers can change what an op looks like.
  for (bool hasForm : {true, false}) {
    // The operands of an op tell its layer, the calls around it its part of a sequence, and its
    // uses its variable. Layers can have another order in the small model, so details go first.
    for (Detail detail : {Detail::Uses, Detail::Calls, Detail::Operands, Detail::Place}) {
      pairing.pair(detail, hasForm, false);
    }
    pairing.pair(Detail::Operands, hasForm, true);
    pairing.pairMasksByUse();
  }
  if (Operation *op = pairing.findUnpaired()) {
    return op->emitError() << describe(op) << " has no counterpart in @" << ofLarge.getSymName();
  }
  return pairing.take();
}

} // namespace weft::verify
