//===- Repeats.cpp - work on micro-batches that repeats -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Repeats.h"

#include "Linearize.h"

#include "weft/Dialect/Weft/IR/AttributeNames.h"

#include "llvm/ADT/MapVector.h"

#include <set>

using namespace mlir;
using namespace weft;

namespace {

bool isOfMicroBatch(func::FuncOp function) {
  return function && function->hasAttr(kMicroBatchAttrName) && function.getNumArguments() > 0 &&
         function.getArgumentTypes()[0].isIndex();
}

/// What makes two ops work of one kind.
Attribute kindOf(Operation *op) {
  if (auto call = dyn_cast<CallOp>(op)) {
    return call.getCalleeAttr();
  }
  auto send = dyn_cast<SendOp>(op);
  return send ? send.getNumberAttr() : cast<ReceiveOp>(op).getNumberAttr();
}

/// Returns true if the value may be lost once it was read: nothing else reads it, and it is no
/// variable's.
bool mayBeReplaced(Value value) { return value.hasOneUse() && !value.getDefiningOp<ReadOp>(); }

class Finder {
public:
  Finder(func::FuncOp section, const ModuleSymbols &symbols) : section(section), symbols(symbols) {}

  std::optional<Repeat> run() {
    collect();
    if (repeat.ops.empty() || !standsTogether()) {
      return std::nullopt;
    }
    leaveEndsOut();
    if (!numberKinds() || !hasLikeOperands() || !isReadAsPassedOn()) {
      return std::nullopt;
    }
    joinNeighbours();
    return std::move(repeat);
  }

private:
  /// Where an op gets an operand.
  struct Source {
    /// If no op of the repeat makes it.
    Value outside;
    /// Else the kind of the op that does, and the number of its result.
    uint32_t kind = 0;
    unsigned result = 0;
    /// It is of the micro-batch before.
    bool isPassedOn = false;

    bool operator==(const Source &other) const = default;
  };

  /// Says which result of which function it is.
  static std::pair<const void *, unsigned> keyOf(OpResult result) {
    return {cast<CallOp>(result.getOwner()).getCalleeAttr().getAsOpaquePointer(),
            result.getResultNumber()};
  }

  void collect();
  void notePassedOn(CallOp call);
  std::optional<int64_t> microBatchOf(Operation &op) const;
  bool standsTogether() const;
  void leaveEndsOut();
  bool numberKinds();
  std::optional<Source> sourceOf(Value operand, const RepeatedOp &user) const;
  std::optional<SmallVector<Source>> sourcesOf(const RepeatedOp &user) const;
  bool hasLikeOperands();
  bool isReadAsPassedOn() const;
  void joinNeighbours();

  func::FuncOp section;
  const ModuleSymbols &symbols;
  Repeat repeat;
  /// The micro-batches of calls.
  llvm::DenseMap<Operation *, int64_t> ofCalls;
  /// The results that some call gets from the one before.
  std::set<std::pair<const void *, unsigned>> passedOn;
  /// The place of each op in the repeat.
  llvm::DenseMap<Operation *, size_t> places;
  int64_t count = 0;
};

/// A send is of the micro-batch whose call makes its operand, unless that is passed on; a receive
/// of that whose calls read it, if they are of one.
std::optional<int64_t> Finder::microBatchOf(Operation &op) const {
  auto find = [&](Operation *call) {
    auto known = ofCalls.find(call);
    return known == ofCalls.end() ? std::nullopt : std::optional(known->second);
  };
  if (auto send = dyn_cast<SendOp>(op)) {
    auto made = send.getInput().getDefiningOp<CallOp>();
    return made && !passedOn.contains(keyOf(cast<OpResult>(send.getInput()))) ? find(made)
                                                                              : std::nullopt;
  }
  if (!isa<ReceiveOp>(op) || op.use_empty()) {
    return find(&op);
  }
  std::optional<int64_t> common = find(*op.user_begin());
  bool isOfOne = llvm::all_of(op.getUsers(), [&](Operation *user) { return find(user) == common; });
  return isOfOne ? common : std::nullopt;
}

void Finder::notePassedOn(CallOp call) {
  for (Value operand : call.getOperands()) {
    auto before = operand.getDefiningOp<CallOp>();
    if (before && before.getCallee() == call.getCallee()) {
      passedOn.insert(keyOf(cast<OpResult>(operand)));
    }
  }
}

void Finder::collect() {
  for (auto call : section.getOps<CallOp>()) {
    if (isOfMicroBatch(symbols.functions.lookup(call.getCalleeAttr().getAttr()))) {
      auto number = call.getOperand(0).getDefiningOp<arith::ConstantIndexOp>();
      if (number) {
        ofCalls[call] = number.value();
        notePassedOn(call);
      }
    }
  }
  for (Operation &op : section.getOps()) {
    if (std::optional<int64_t> microBatch = microBatchOf(op)) {
      repeat.ops.push_back({&op, *microBatch});
    }
  }
}

bool Finder::standsTogether() const {
  auto next = repeat.ops.begin();
  for (Operation *op = next->op; next != repeat.ops.end(); op = op->getNextNode()) {
    if (op == next->op) {
      ++next;
    } else if (!isa<arith::ConstantIndexOp>(op)) {
      return false;
    }
  }
  return true;
}

void Finder::leaveEndsOut() {
  Attribute first = kindOf(repeat.ops.front().op);
  bool isOneFunction = llvm::all_of(repeat.ops, [&](const RepeatedOp &each) {
    return isa<CallOp>(each.op) && kindOf(each.op) == first;
  });
  if (isOneFunction) {
    repeat.ops.erase(repeat.ops.begin());
    repeat.ops.resize(repeat.ops.size() - std::min<size_t>(1, repeat.ops.size()));
  }
}

/// Returns true if all micro-batches have the same kinds, in one order, and each kind has the
/// micro-batches in their order.
bool Finder::numberKinds() {
  llvm::MapVector<std::pair<OperationName, Attribute>, SmallVector<int64_t>> byKind;
  std::map<int64_t, size_t> kindsSeen;
  for (auto [place, each] : llvm::enumerate(repeat.ops)) {
    std::pair key(each.op->getName(), kindOf(each.op));
    auto [own, isNew] = byKind.insert({key, {}});
    each.kind = uint32_t(own - byKind.begin());
    places[each.op] = place;
    if (isNew) {
      repeat.kinds.push_back({each.op});
    }
    int64_t expected = repeat.ops.front().microBatch + int64_t(own->second.size());
    if (each.microBatch != expected || kindsSeen[each.microBatch]++ != each.kind) {
      return false;
    }
    own->second.push_back(each.microBatch);
  }
  count = byKind.empty() ? 0 : int64_t(byKind.front().second.size());
  return count > 1 && llvm::all_of(byKind, [&](const auto &each) {
           return int64_t(each.second.size()) == count;
         });
}

/// Nothing if it is of another micro-batch, and not passed on.
std::optional<Finder::Source> Finder::sourceOf(Value operand, const RepeatedOp &user) const {
  auto place = places.find(operand.getDefiningOp());
  if (place == places.end()) {
    return Source{operand};
  }
  const RepeatedOp &made = repeat.ops[place->second];
  unsigned result = cast<OpResult>(operand).getResultNumber();
  if (made.microBatch == user.microBatch) {
    return Source{{}, made.kind, result, false};
  }
  bool isPassedOn = made.microBatch + 1 == user.microBatch && made.kind == user.kind;
  return isPassedOn ? std::optional(Source{{}, made.kind, result, true}) : std::nullopt;
}

/// The first operand of a call is the number of its micro-batch.
std::optional<SmallVector<Finder::Source>> Finder::sourcesOf(const RepeatedOp &user) const {
  SmallVector<Source> sources;
  for (Value operand : user.op->getOperands().drop_front(isa<CallOp>(user.op) ? 1 : 0)) {
    std::optional<Source> source = sourceOf(operand, user);
    if (!source) {
      return std::nullopt;
    }
    sources.push_back(*source);
  }
  return sources;
}

/// Compares operands with those for the second micro-batch, and finds out what is passed on.
bool Finder::hasLikeOperands() {
  const int64_t first = repeat.ops.front().microBatch;
  std::vector<SmallVector<Source>> ofSecond(repeat.kinds.size());
  for (const RepeatedOp &each : repeat.ops) {
    if (each.microBatch == first + 1) {
      ofSecond[each.kind] = sourcesOf(each).value_or(SmallVector<Source>());
    }
  }
  for (const RepeatedOp &each : repeat.ops) {
    std::optional<SmallVector<Source>> sources = sourcesOf(each);
    if (!sources || sources->size() != ofSecond[each.kind].size()) {
      return false;
    }
    for (auto [number, pair] : llvm::enumerate(llvm::zip(*sources, ofSecond[each.kind]))) {
      auto [own, other] = pair;
      if (each.microBatch > first || !other.isPassedOn) {
        if (!(own == other)) {
          return false;
        }
        continue;
      }
      if (!own.outside || !mayBeReplaced(own.outside)) {
        return false;
      }
      repeat.kinds[each.kind].passedOn.push_back({unsigned(number) + 1, other.result});
    }
  }
  return true;
}

/// Returns true if what is passed on is not read by other work on its micro-batch, and nothing else
/// is read behind the repeat, except for results of the only kind.
bool Finder::isReadAsPassedOn() const {
  const int64_t last = repeat.ops.front().microBatch + count - 1;
  for (const RepeatedOp &each : repeat.ops) {
    const RepeatedKind &kind = repeat.kinds[each.kind];
    for (OpResult result : each.op->getResults()) {
      bool isPassedOn = llvm::any_of(kind.passedOn, [&](const PassedOn &passed) {
        return passed.result == result.getResultNumber();
      });
      bool mayBeRead = llvm::all_of(result.getUsers(), [&](Operation *user) {
        auto place = places.find(user);
        if (place != places.end()) {
          return !isPassedOn || repeat.ops[place->second].microBatch != each.microBatch;
        }
        return each.microBatch == last && (isPassedOn || repeat.kinds.size() == 1);
      });
      if (!mayBeRead) {
        return false;
      }
    }
  }
  return true;
}

void Finder::joinNeighbours() {
  for (RepeatedKind &kind : llvm::drop_begin(repeat.kinds)) {
    kind.followsRight = true;
  }
  for (auto [place, each] : llvm::enumerate(repeat.ops)) {
    const RepeatedOp *before = place > 0 ? &repeat.ops[place - 1] : nullptr;
    if (!before || before->kind + 1 != each.kind || before->microBatch != each.microBatch) {
      repeat.kinds[each.kind].followsRight = false;
    }
  }
}

} // namespace

std::optional<Repeat> weft::findRepeat(func::FuncOp section, const ModuleSymbols &symbols) {
  return Finder(section, symbols).run();
}

std::string weft::nameOfWork(Operation *op) {
  if (auto call = dyn_cast<CallOp>(op)) {
    return call.getCallee().str();
  }
  auto send = dyn_cast<SendOp>(op);
  return send ? "send_" + std::to_string(send.getNumber())
              : "receive_" + std::to_string(cast<ReceiveOp>(op).getNumber());
}
