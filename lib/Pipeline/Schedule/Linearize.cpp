//===- Linearize.cpp - a section with its calls inlined -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Linearize.h"

#include "Repeats.h"

#include "llvm/ADT/DenseSet.h"

using namespace mlir;
using namespace weft;

ModuleSymbols::ModuleSymbols(ModuleOp module) {
  for (Operation &op : *module.getBody()) {
    if (auto variable = dyn_cast<VariableOp>(op)) {
      numberOfVariable[variable.getSymNameAttr()] = variables.size();
      variables.push_back(variable);
    } else if (auto function = dyn_cast<func::FuncOp>(op)) {
      functions[function.getSymNameAttr()] = function;
    }
  }
}

bool FlatSection::isOfMicroBatch(const FlatValue &value) const {
  if (!repeat || !repeat->contains(value.definedAt) || !repeat->contains(value.lastRead)) {
    return false;
  }
  auto next =
      llvm::upper_bound(repeat->bodies, value.definedAt,
                        [](int32_t time, const FlatBody &body) { return time < body.begin; });
  return next != repeat->bodies.end() && value.lastRead >= next->begin;
}

bool FlatSection::isGathered(const FlatValue &value) const {
  return repeat && repeat->first <= value.definedAt && value.definedAt < repeat->begin &&
         value.lastRead >= repeat->begin;
}

namespace {

class Linearizer {
public:
  /// `mayRepeat` says whether work of micro-batches may be listed once for all.
  Linearizer(func::FuncOp section, const ModuleSymbols &symbols, bool mayRepeat)
      : section(section), symbols(symbols), mayRepeat(mayRepeat),
        oldValues(symbols.variables.size(), -1), isAssigned(symbols.variables.size(), false) {}

  FailureOr<FlatSection> run() {
    flat.paths.push_back("");
    if (mayRepeat) {
      noteRepeat();
    }
    if (failed(enter(section, {}, 0))) {
      return failure();
    }
    for (Operation *op : findOrder()) {
      body.reset();
      if (failed(visitAll(op))) {
        return failure();
      }
      if (repeated.contains(op) || isBetween(op)) {
        flat.repeat->last = flat.ops.size();
      }
    }
    keepForRepeat();
    return std::move(flat);
  }

private:
  /// A function that is being walked: the op to visit next, and the call to return to.
  struct Frame {
    func::FuncOp function;
    Block::iterator next;
    CallOp call;
    uint32_t path;
  };

  LogicalResult enter(func::FuncOp function, CallOp call, uint32_t path) {
    Operation *at = call ? call.getOperation() : function.getOperation();
    if (!function || !function.getBody().hasOneBlock()) {
      return at->emitOpError("expected a function of a single block here");
    }
    if (!active.insert(function).second) {
      return at->emitOpError() << "calls @" << function.getSymName() << " within itself";
    }
    Block &body = function.getBody().front();
    if (call) {
      // No function is active twice, so one table of numbers serves all frames.
      for (auto [argument, operand] : llvm::zip(body.getArguments(), call->getOperands())) {
        numberOf[argument] = numberOf.at(operand);
      }
    }
    frames.push_back({function, body.begin(), call, path});
    return success();
  }

  void leave(func::ReturnOp op) {
    if (CallOp call = frames.back().call) {
      for (auto [result, operand] : llvm::zip(call->getResults(), op->getOperands())) {
        numberOf[result] = numberOf.at(operand);
      }
      if (isFirstOfKind(call)) {
        addCarries(call, op);
        flat.repeat->end = flat.ops.size();
      }
    }
    active.erase(frames.back().function);
    frames.pop_back();
  }

  /// Returns the section's ops in the order of the list: what gathers for the repeat before it,
  /// what reduces behind it.
  SmallVector<Operation *> findOrder() {
    SmallVector<Operation *> order;
    for (Operation &op : section.getBody().front()) {
      if (!isBetween(&op)) {
        order.push_back(&op);
      }
    }
    if (repeat) {
      auto isRepeated = [&](Operation *op) { return repeated.contains(op); };
      auto behind = llvm::find_if(llvm::reverse(order), isRepeated).base();
      order.insert(behind, reductions.begin(), reductions.end());
      SmallVector<Operation *> all(gathers.begin(), gathers.end());
      for (const CallBetween &each : repeat->gathers) {
        if (!llvm::is_contained(gathers, each.op)) {
          all.push_back(each.op);
        }
      }
      order.insert(llvm::find_if(order, isRepeated), all.begin(), all.end());
    }
    return order;
  }

  /// Lists an op of the section, with all of the functions that it calls.
  LogicalResult visitAll(Operation *op) {
    const size_t outer = frames.size();
    if (failed(visit(op))) {
      return failure();
    }
    while (frames.size() > outer) {
      if (failed(visit(&*frames.back().next++))) {
        return failure();
      }
    }
    return success();
  }

  uint32_t makeValue(Type type) {
    flat.values.emplace_back().type = type;
    return flat.values.size() - 1;
  }

  LogicalResult visit(Operation *op) {
    if (auto returnOp = dyn_cast<func::ReturnOp>(op)) {
      leave(returnOp);
      return success();
    }
    if (auto kind = repeated.find(op); kind != repeated.end()) {
      return visitRepeated(op, kind->second);
    }
    if (auto call = dyn_cast<CallOp>(op)) {
      return isBetween(op) ? visitBetween(call) : visitCall(call);
    }
    if (auto assign = dyn_cast<AssignOp>(op)) {
      return visitAssign(assign);
    }
    visitPlain(op);
    return success();
  }

  void visitPlain(Operation *op) {
    if (auto read = dyn_cast<ReadOp>(op)) {
      visitRead(read);
    } else if (auto reshape = dyn_cast<ReshapeOp>(op)) {
      // The same elements in the same order: the same value, for all that follows.
      numberOf[reshape.getOutput()] = numberOf.at(reshape.getInput());
    } else if (isa<AgreeOp>(op)) {
      flat.agreedAt = static_cast<int32_t>(flat.ops.size());
      visitTensorOp(op);
    } else if (llvm::any_of(op->getResultTypes(), llvm::IsaPred<ShapedType>) ||
               llvm::any_of(op->getOperandTypes(), llvm::IsaPred<ShapedType>)) {
      visitTensorOp(op);
    } else {
      visitIndexOp(op);
    }
  }

  void noteRepeat() {
    repeat = findRepeat(section, symbols);
    if (!repeat) {
      return;
    }
    flat.repeat.emplace();
    gathers = firstCalls(repeat->gathers);
    reductions = firstCalls(repeat->reductions);
    noteBodies(gathers);
    for (RepeatedKind &kind : repeat->kinds) {
      if (!kind.followsRight) {
        flat.repeat->bodies.emplace_back();
      }
      std::string &name = flat.repeat->bodies.back().name;
      name += (name.empty() ? "" : " ") + nameOfWork(kind.first);
      bodyOfKind.push_back(flat.repeat->bodies.size() - 1);
    }
    noteBodies(reductions);
    noteActions();
  }

  /// Makes a body of each function.
  void noteBodies(ArrayRef<CallOp> calls) {
    for (CallOp call : calls) {
      bodyOfFunction[call.getCallee()] = flat.repeat->bodies.size();
      firstOfFunction[call.getCallee()] = call;
      flat.repeat->bodies.push_back({nameOfWork(call)});
    }
  }

  void noteActions() {
    std::vector<CallBetween> calls(repeat->gathers.begin(), repeat->gathers.end());
    calls.insert(calls.end(), repeat->reductions.begin(), repeat->reductions.end());
    // Those at one place as they stand in the section.
    llvm::sort(calls, [](const CallBetween &a, const CallBetween &b) {
      CallOp first = a.op, second = b.op;
      return a.place != b.place ? a.place < b.place : first->isBeforeInBlock(second);
    });
    auto next = calls.begin();
    auto noteCalls = [&](size_t place) {
      for (; next != calls.end() && next->place <= place; ++next) {
        CallOp call = next->op;
        flat.repeat->actions.push_back({bodyOfFunction.at(call.getCallee()), std::nullopt});
      }
    };
    for (auto [place, each] : llvm::enumerate(repeat->ops)) {
      noteCalls(place);
      repeated[each.op] = each.kind;
      if (!repeat->kinds[each.kind].followsRight) {
        flat.repeat->actions.push_back({bodyOfKind[each.kind], each.microBatch});
      }
    }
    noteCalls(repeat->ops.size());
  }

  /// Returns true for a call of a function that gathers or reduces.
  bool isBetween(Operation *op) const {
    auto call = dyn_cast<CallOp>(op);
    return call && firstOfFunction.contains(call.getCallee());
  }

  /// Lists a function that gathers or reduces once. What other calls gather has the same numbers.
  LogicalResult visitBetween(CallOp call) {
    if (CallOp first = firstOfFunction.at(call.getCallee()); first != call) {
      for (auto [result, own] : llvm::zip_equal(call->getResults(), first->getResults())) {
        numberOf[result] = numberOf.at(own);
      }
      return success();
    }
    const auto time = static_cast<int32_t>(flat.ops.size());
    const uint32_t body = bodyOfFunction.at(call.getCallee());
    flat.repeat->first = body == 0 ? time : flat.repeat->first;
    flat.repeat->bodies[body].begin = time;
    return visitCall(call);
  }

  /// Returns true if `op` is listed for all work of its kind.
  bool isFirstOfKind(Operation *op) const {
    auto kind = repeated.find(op);
    return kind != repeated.end() && repeat->kinds[kind->second].first == op;
  }

  /// Lists the first work of each kind; the results of others have the numbers of its results.
  LogicalResult visitRepeated(Operation *op, uint32_t kind) {
    if (!isFirstOfKind(op)) {
      for (auto [result, own] :
           llvm::zip_equal(op->getResults(), repeat->kinds[kind].first->getResults())) {
        numberOf[result] = numberOf.at(own);
      }
      return success();
    }
    auto time = static_cast<int32_t>(flat.ops.size());
    if (kind == 0) {
      flat.repeat->begin = time;
      flat.repeat->first = gathers.empty() ? time : flat.repeat->first;
    }
    if (!repeat->kinds[kind].followsRight) {
      flat.repeat->bodies[bodyOfKind[kind]].begin = time;
    }
    body = bodyOfKind[kind];
    if (auto call = dyn_cast<CallOp>(op)) {
      return enterRepeated(call);
    }
    visitPlain(op);
    flat.repeat->end = flat.ops.size();
    return success();
  }

  LogicalResult enterRepeated(CallOp call) {
    func::FuncOp function = symbols.functions.lookup(call.getCalleeAttr().getAttr());
    if (failed(enter(function, call, 0))) {
      return failure();
    }
    Value number = function.getArgument(0);
    numberOf[number] = makeValue(number.getType());
    flat.values.back().isMicroBatch = true;
    return success();
  }

  void addCarries(CallOp call, func::ReturnOp op) {
    uint32_t kind = repeated.at(call);
    for (auto [operand, result] : repeat->kinds[kind].passedOn) {
      flat.carries.push_back({bodyOfKind[kind], op, result, numberOf.at(call->getOperand(operand)),
                              numberOf.at(op->getOperand(result))});
    }
  }

  /// What each micro-batch reads must last until the end of the repeat, except what it replaces,
  /// and so must what is gathered anew. What is read behind the repeat ends there, whatever the
  /// orders in it.
  void keepForRepeat() {
    if (!flat.repeat) {
      return;
    }
    llvm::DenseSet<uint32_t> carried;
    for (const FlatCarry &carry : flat.carries) {
      carried.insert(carry.before);
    }
    for (auto [number, value] : llvm::enumerate(flat.values)) {
      value.isReadInOtherOrders &= value.lastRead < flat.repeat->end;
      bool isGathered = flat.repeat->first <= value.lastRead &&
                        value.lastRead < flat.repeat->begin && value.definedAt < flat.repeat->first;
      bool isRead = value.definedAt < flat.repeat->begin && flat.repeat->contains(value.lastRead);
      if (isGathered || (isRead && !carried.contains(number))) {
        value.lastRead = flat.repeat->end;
      }
    }
  }

  LogicalResult visitCall(CallOp call) {
    func::FuncOp function = symbols.functions.lookup(call.getCalleeAttr().getAttr());
    const std::string &parent = flat.paths[frames.back().path];
    std::string path = parent.empty() ? "" : parent + "/";
    path += call.getLabel();
    flat.paths.push_back(std::move(path));
    return enter(function, call, flat.paths.size() - 1);
  }

  LogicalResult visitAssign(AssignOp assign) {
    uint32_t variable = symbols.numberOfVariable.lookup(assign.getVariableAttr().getAttr());
    if (frames.size() != 1) {
      return assign.emitOpError("must stand in @init or @step");
    }
    if (isAssigned[variable]) {
      return assign.emitOpError() << "assigns @" << assign.getVariable() << " a second time";
    }
    isAssigned[variable] = true;
    flat.assigns.push_back({assign, variable, numberOf.at(assign.getValue())});
    return success();
  }

  void visitRead(ReadOp read) {
    uint32_t variable = symbols.numberOfVariable.lookup(read.getVariableAttr().getAttr());
    if (oldValues[variable] < 0) {
      oldValues[variable] = makeValue(read.getOutput().getType());
      flat.values.back().variable = variable;
    }
    numberOf[read.getOutput()] = oldValues[variable];
  }

  void visitTensorOp(Operation *op) {
    int32_t time = flat.ops.size();
    flat.ops.push_back({op, frames.back().path, static_cast<uint32_t>(flat.numbers.size())});
    for (Value operand : op->getOperands()) {
      uint32_t number = numberOf.at(operand);
      flat.values[number].lastRead = time;
      noteReader(number);
      flat.numbers.push_back(number);
    }
    for (Value result : op->getResults()) {
      uint32_t number = makeValue(result.getType());
      flat.values[number].definedAt = time;
      numberOf[result] = number;
      flat.numbers.push_back(number);
    }
  }

  /// Notes that the body that is being listed reads a value, if it is one of another body.
  void noteReader(uint32_t number) {
    if (body && repeat->hasOtherOrders &&
        flat.values[number].definedAt < flat.repeat->bodies[*body].begin) {
      auto [reader, isNew] = readers.try_emplace(number, *body);
      flat.values[number].isReadInOtherOrders |= reader->second != *body;
    }
  }

  void visitIndexOp(Operation *op) {
    for (Value result : op->getResults()) {
      numberOf[result] = makeValue(result.getType());
    }
    if (auto constant = dyn_cast<arith::ConstantIndexOp>(op)) {
      flat.values.back().constant = constant.value();
    }
  }

  func::FuncOp section;
  const ModuleSymbols &symbols;
  const bool mayRepeat;
  FlatSection flat;
  std::vector<Frame> frames;
  llvm::DenseSet<Operation *> active;
  llvm::DenseMap<Value, uint32_t> numberOf;
  std::vector<int64_t> oldValues;
  std::vector<bool> isAssigned;
  std::optional<Repeat> repeat;
  /// The kind of each op of the repeat, and the body of each kind.
  llvm::DenseMap<Operation *, uint32_t> repeated;
  SmallVector<uint32_t> bodyOfKind;
  /// The body that is being listed, and the first other one that reads each value.
  std::optional<uint32_t> body;
  llvm::DenseMap<uint32_t, uint32_t> readers;
  /// The first calls of functions that gather or reduce, and the bodies of these.
  SmallVector<CallOp> gathers, reductions;
  llvm::DenseMap<StringRef, CallOp> firstOfFunction;
  llvm::DenseMap<StringRef, uint32_t> bodyOfFunction;
};

} // namespace

/// Returns true if a launch overwrites a value that other bodies read, some later and some earlier.
static bool overwritesInOtherOrders(const FlatSection &flat) {
  return llvm::any_of(llvm::enumerate(flat.ops), [&](auto op) {
    auto launch = dyn_cast<LaunchOp>(op.value().op);
    return launch && llvm::any_of(launch.getTied(), [&](int64_t operand) {
             const FlatValue *value =
                 operand < 0 ? nullptr : &flat.values[flat.operandsOf(op.value())[operand]];
             return value && value->isReadInOtherOrders &&
                    value->lastRead == static_cast<int32_t>(op.index());
           });
  });
}

FailureOr<FlatSection> weft::linearize(func::FuncOp section, const ModuleSymbols &symbols) {
  FailureOr<FlatSection> flat = Linearizer(section, symbols, /*mayRepeat=*/true).run();
  // The launch was made for a list in which its micro-batch's value ends there.
  bool mustBeFlat = succeeded(flat) && overwritesInOtherOrders(*flat);
  return mustBeFlat ? Linearizer(section, symbols, /*mayRepeat=*/false).run() : std::move(flat);
}
