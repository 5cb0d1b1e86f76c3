//===- Repeats.cpp - work on micro-batches that repeats -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Repeats.h"

#include "Linearize.h"

#include "weft/Dialect/Weft/IR/AttributeNames.h"

#include "llvm/ADT/DenseSet.h"

#include <map>
#include <set>

using namespace mlir;
using namespace weft;

namespace {

bool isOfMicroBatch(func::FuncOp function) {
  return function && function->hasAttr(kMicroBatchAttrName) && function.getNumArguments() > 0 &&
         function.getArgumentTypes()[0].isIndex();
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
    if (!numberKinds() || !areGatheredAnew() || !hasLikeOperands() || !isReadAsPassedOn() ||
        !areReducedOnce()) {
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
    /// Else the kind of the op that does, unless it is gathered, and the number of its result.
    uint32_t kind = 0;
    unsigned result = 0;
    /// It is of the micro-batch before.
    bool isPassedOn = false;
    /// The function that gathers it.
    const void *gather = nullptr;

    bool operator==(const Source &other) const = default;
  };

  /// Says which result of which function it is.
  static std::pair<const void *, unsigned> keyOf(OpResult result) {
    return {cast<CallOp>(result.getOwner()).getCalleeAttr().getAsOpaquePointer(),
            result.getResultNumber()};
  }

  /// What makes two ops work of one kind: the op's name, what it stands for, and where its operands
  /// come from: a kind, counted from 1, and a result, or 0 and a value.
  using Key = std::tuple<const void *, const void *, std::vector<std::pair<uint32_t, uintptr_t>>>;

  void collect();
  void notePassedOn(CallOp call);
  void noteBetween();
  bool areGatheredAnew() const;
  bool areReducedOnce() const;
  void noteRead();
  void noteSent();
  std::optional<int64_t> microBatchOf(Operation *op) const;
  Key keyOf(Operation *op) const;
  bool standsTogether();
  void leaveEndsOut();
  bool numberKinds();
  std::optional<Source> gatherOf(Value operand, const RepeatedOp &user) const;
  std::optional<Source> sourceOf(Value operand, const RepeatedOp &user) const;
  std::optional<SmallVector<Source>> sourcesOf(const RepeatedOp &user) const;
  bool hasLikeOperands();
  bool isReadAsPassedOn() const;
  void joinNeighbours();

  func::FuncOp section;
  const ModuleSymbols &symbols;
  Repeat repeat;
  /// The micro-batches of work.
  llvm::DenseMap<Operation *, int64_t> microBatches;
  /// The results that some call gets from the one before.
  std::set<std::pair<const void *, unsigned>> passedOn;
  /// Of each call that gathers, the number of ops of the repeat before the next one of its
  /// function.
  llvm::DenseMap<Operation *, size_t> gatheredUntil;
  /// The place of each op in the repeat.
  llvm::DenseMap<Operation *, size_t> places;
  int64_t count = 0;
};

std::optional<int64_t> Finder::microBatchOf(Operation *op) const {
  auto known = microBatches.find(op);
  return known == microBatches.end() ? std::nullopt : std::optional(known->second);
}

/// A receive, and an op on what was received or on a call's result, is of the micro-batch whose
/// work reads it, if that is of one.
void Finder::noteRead() {
  llvm::SmallVector<Operation *> candidates;
  llvm::DenseSet<Operation *> known;
  for (Operation &op : section.getOps()) {
    bool isOnKnown = llvm::any_of(op.getOperands(), [&](Value operand) {
      Operation *definition = operand.getDefiningOp();
      return known.contains(definition) || microBatches.contains(definition);
    });
    if (isa<ReceiveOp>(op) || (isOnKnown && !isa<CallOp>(op))) {
      candidates.push_back(&op);
      known.insert(&op);
    }
  }
  for (Operation *op : llvm::reverse(candidates)) {
    std::optional<int64_t> common;
    bool isOfOne = !op->use_empty() && llvm::all_of(op->getUsers(), [&](Operation *user) {
      std::optional<int64_t> own = microBatchOf(user);
      common = common ? common : own;
      return own && own == common;
    });
    if (isOfOne) {
      microBatches[op] = *common;
    }
  }
}

/// A send, and an op on what is to be sent, is of the micro-batch whose call makes its operand,
/// unless that is passed on.
void Finder::noteSent() {
  llvm::DenseSet<Operation *> sent;
  for (Operation &op : llvm::reverse(section.front())) {
    bool isForSend =
        !op.use_empty() && !isa<CallOp>(op) &&
        llvm::all_of(op.getUsers(), [&](Operation *user) { return sent.contains(user); });
    if (isa<SendOp>(op) || isForSend) {
      sent.insert(&op);
    }
  }
  for (Operation &op : section.getOps()) {
    for (Value operand : op.getOperands()) {
      std::optional<int64_t> made = microBatchOf(operand.getDefiningOp());
      bool isPassedOn = made && isa<CallOp>(operand.getDefiningOp()) &&
                        passedOn.contains(keyOf(cast<OpResult>(operand)));
      if (sent.contains(&op) && made && !isPassedOn) {
        microBatches[&op] = *made;
      }
    }
  }
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
        microBatches[call] = number.value();
        notePassedOn(call);
      }
    }
  }
  noteRead();
  noteSent();
  for (Operation &op : section.getOps()) {
    if (std::optional<int64_t> microBatch = microBatchOf(&op)) {
      repeat.ops.push_back({&op, *microBatch});
    }
  }
  noteBetween();
}

/// Finds the calls that gather and reduce: all in the section, as only a schedule makes them.
void Finder::noteBetween() {
  size_t place = 0;
  for (Operation &op : section.getOps()) {
    place += place < repeat.ops.size() && repeat.ops[place].op == &op ? 1 : 0;
    auto call = dyn_cast<CallOp>(op);
    func::FuncOp function =
        call ? symbols.functions.lookup(call.getCalleeAttr().getAttr()) : func::FuncOp();
    if (function && function->hasAttr(kGatherAttrName)) {
      repeat.gathers.push_back({call, place});
    } else if (function && function->hasAttr(kReduceAttrName)) {
      repeat.reductions.push_back({call, place});
    }
  }
  llvm::DenseMap<StringRef, size_t> next;
  for (const CallBetween &each : llvm::reverse(repeat.gathers)) {
    CallOp call = each.op;
    auto [own, isLast] = next.try_emplace(call.getCallee(), repeat.ops.size());
    gatheredUntil[call] = own->second;
    own->second = each.place;
  }
}

/// Returns true if nothing else stands between the first and the last of the work.
bool Finder::standsTogether() {
  llvm::DenseSet<Operation *> open;
  for (const RepeatedOp &each : repeat.ops) {
    open.insert(each.op);
  }
  for (const auto *calls : {&repeat.gathers, &repeat.reductions}) {
    for (const CallBetween &each : *calls) {
      open.insert(each.op);
    }
  }
  bool hasBegun = false;
  for (Operation &op : section.getOps()) {
    const bool isWork = open.erase(&op);
    hasBegun |= isWork;
    if (hasBegun && !open.empty() && !isWork && !isa<arith::ConstantIndexOp>(op)) {
      return false;
    }
  }
  return true;
}

/// Returns true if the calls of each function that gathers get the same operands, from outside.
bool Finder::areGatheredAnew() const {
  llvm::DenseMap<StringRef, CallOp> firsts;
  return llvm::all_of(repeat.gathers, [&](const CallBetween &each) {
    CallOp call = each.op;
    CallOp first = firsts.try_emplace(call.getCallee(), call).first->second;
    bool isFromOutside = llvm::none_of(call->getOperands(), [&](Value operand) {
      return places.contains(operand.getDefiningOp());
    });
    bool isForRepeat =
        llvm::all_of(call->getUsers(), [&](Operation *user) { return places.contains(user); });
    return isFromOutside && isForRepeat && llvm::equal(call->getOperands(), first->getOperands());
  });
}

/// Returns true if each function that reduces is called once, and no work needs its results.
bool Finder::areReducedOnce() const {
  llvm::DenseSet<StringRef> functions;
  return llvm::all_of(repeat.reductions, [&](const CallBetween &each) {
    CallOp call = each.op;
    return functions.insert(call.getCallee()).second &&
           llvm::none_of(call->getUsers(), [&](Operation *user) { return places.contains(user); });
  });
}

void Finder::leaveEndsOut() {
  auto first = dyn_cast<CallOp>(repeat.ops.front().op);
  bool isOneFunction =
      first && repeat.gathers.empty() && llvm::all_of(repeat.ops, [&](const RepeatedOp &each) {
        auto call = dyn_cast<CallOp>(each.op);
        return call && call.getCallee() == first.getCallee();
      });
  if (isOneFunction) {
    repeat.ops.erase(repeat.ops.begin());
    repeat.ops.resize(repeat.ops.size() - std::min<size_t>(1, repeat.ops.size()));
  }
}

/// REQUIRES: the kinds of ops that make operands of `op` are known.
Finder::Key Finder::keyOf(Operation *op) const {
  const void *name = op->getName().getAsOpaquePointer();
  if (auto call = dyn_cast<CallOp>(op)) {
    return {name, call.getCalleeAttr().getAsOpaquePointer(), {}};
  }
  if (auto send = dyn_cast<SendOp>(op)) {
    return {name, send.getNumberAttr().getAsOpaquePointer(), {}};
  }
  if (auto receive = dyn_cast<ReceiveOp>(op)) {
    return {name, receive.getNumberAttr().getAsOpaquePointer(), {}};
  }
  Key key{name, op->getAttrDictionary().getAsOpaquePointer(), {}};
  for (Value operand : op->getOperands()) {
    auto place = places.find(operand.getDefiningOp());
    if (place == places.end()) {
      std::get<2>(key).emplace_back(0, uintptr_t(operand.getAsOpaquePointer()));
    } else {
      std::get<2>(key).emplace_back(repeat.ops[place->second].kind + 1,
                                    cast<OpResult>(operand).getResultNumber());
    }
  }
  return key;
}

/// Returns true if all micro-batches have the same kinds, and each kind has the micro-batches in
/// their order.
bool Finder::numberKinds() {
  std::map<Key, uint32_t> kinds;
  SmallVector<int64_t> counts;
  std::map<int64_t, size_t> kindsSeen;
  for (auto [place, each] : llvm::enumerate(repeat.ops)) {
    auto [own, isNew] = kinds.try_emplace(keyOf(each.op), uint32_t(kinds.size()));
    each.kind = own->second;
    places[each.op] = place;
    if (isNew) {
      repeat.kinds.push_back({each.op});
      counts.push_back(0);
    }
    int64_t expected = repeat.ops.front().microBatch + counts[each.kind]++;
    if (each.microBatch != expected) {
      return false;
    }
    repeat.hasOtherOrders |= kindsSeen[each.microBatch]++ != each.kind;
  }
  count = counts.empty() ? 0 : counts.front();
  return count > 1 && llvm::all_of(counts, [&](int64_t own) { return own == count; });
}

/// Nothing if the function that gathers it has been called again before `user`.
std::optional<Finder::Source> Finder::gatherOf(Value operand, const RepeatedOp &user) const {
  auto call = operand.getDefiningOp<CallOp>();
  Source source;
  source.result = cast<OpResult>(operand).getResultNumber();
  source.gather = call.getCalleeAttr().getAsOpaquePointer();
  const bool isLatest = places.lookup(user.op) < gatheredUntil.lookup(call);
  return isLatest ? std::optional(source) : std::nullopt;
}

/// Nothing if it is of another micro-batch, and not passed on.
std::optional<Finder::Source> Finder::sourceOf(Value operand, const RepeatedOp &user) const {
  auto place = places.find(operand.getDefiningOp());
  if (place == places.end()) {
    return gatheredUntil.contains(operand.getDefiningOp()) ? gatherOf(operand, user)
                                                           : Source{operand};
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
  for (const auto *calls : {&repeat.gathers, &repeat.reductions}) {
    for (const CallBetween &each : *calls) {
      if (each.place < repeat.ops.size()) {
        repeat.kinds[repeat.ops[each.place].kind].followsRight = false;
      }
    }
  }
}

} // namespace

std::optional<Repeat> weft::findRepeat(func::FuncOp section, const ModuleSymbols &symbols) {
  return Finder(section, symbols).run();
}

SmallVector<CallOp> weft::firstCalls(ArrayRef<CallBetween> calls) {
  SmallVector<CallOp> firsts;
  llvm::DenseSet<StringRef> functions;
  for (const CallBetween &each : calls) {
    CallOp call = each.op;
    if (functions.insert(call.getCallee()).second) {
      firsts.push_back(call);
    }
  }
  return firsts;
}

std::string weft::nameOfWork(Operation *op) {
  if (auto call = dyn_cast<CallOp>(op)) {
    return call.getCallee().str();
  }
  if (auto send = dyn_cast<SendOp>(op)) {
    return "send_" + std::to_string(send.getNumber());
  }
  if (auto launch = dyn_cast<LaunchOp>(op)) {
    return launch.getKernel().str();
  }
  auto receive = dyn_cast<ReceiveOp>(op);
  return receive ? "receive_" + std::to_string(receive.getNumber())
                 : op->getName().stripDialect().str();
}
