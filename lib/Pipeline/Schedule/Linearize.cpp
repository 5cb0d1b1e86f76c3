//===- Linearize.cpp - a section with its calls inlined -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Linearize.h"

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

namespace {

/// Calls of one function that repeat one another.
struct RepeatedCalls {
  SmallVector<CallOp> calls;
  /// For each operand, the result that the next call gets there, or -1.
  SmallVector<int64_t> carried;
  /// The operand that gets the call's number, or -1.
  int64_t number = -1;
};

CallOp nextCall(CallOp call) {
  Operation *next = call->getNextNode();
  while (next && isa<arith::ConstantIndexOp>(next)) {
    next = next->getNextNode();
  }
  auto other = dyn_cast_or_null<CallOp>(next);
  return other && other.getCallee() == call.getCallee() ? other : CallOp();
}

bool isNumber(Value value, int64_t number) {
  auto constant = value.getDefiningOp<arith::ConstantIndexOp>();
  return constant && constant.value() == number;
}

/// Finds how `second` differs from `first`, the call before; fails if that is not as in a repeat.
LogicalResult compareCalls(CallOp first, CallOp second, RepeatedCalls &repeated) {
  for (auto [position, pair] :
       llvm::enumerate(llvm::zip_equal(first.getOperands(), second.getOperands()))) {
    auto [before, after] = pair;
    auto result = dyn_cast<OpResult>(after);
    if (result && result.getOwner() == first) {
      repeated.carried[position] = result.getResultNumber();
    } else if (isNumber(before, 0) && isNumber(after, 1) && repeated.number < 0) {
      repeated.number = position;
    } else if (before != after) {
      return failure();
    }
  }
  SmallVector<int64_t> carried(repeated.carried);
  llvm::sort(carried);
  auto begin = llvm::find_if(carried, [](int64_t result) { return result >= 0; });
  return success(std::adjacent_find(begin, carried.end()) == carried.end());
}

/// Returns true if `call`, the `number`th, gets what the repeat says from the call before it, whose
/// results nothing else reads.
bool continues(CallOp before, CallOp call, int64_t number, CallOp first,
               const RepeatedCalls &repeated) {
  for (auto [position, operand] : llvm::enumerate(call.getOperands())) {
    int64_t result = repeated.carried[position];
    bool isRight = result >= 0 ? operand == before->getResult(result)
                   : static_cast<int64_t>(position) == repeated.number
                       ? isNumber(operand, number)
                       : operand == first->getOperand(position);
    if (!isRight) {
      return false;
    }
  }
  return llvm::all_of(before->getUsers(), [&](Operation *user) { return user == call; });
}

/// Returns the calls that repeat `first`; none if it is called once, or what it gets to pass on has
/// another reader.
std::optional<RepeatedCalls> findRepeat(CallOp first) {
  CallOp second = nextCall(first);
  RepeatedCalls repeated;
  repeated.carried.assign(first->getNumOperands(), -1);
  if (!second || failed(compareCalls(first, second, repeated))) {
    return std::nullopt;
  }
  for (auto [position, result] : llvm::enumerate(repeated.carried)) {
    Value operand = first->getOperand(position);
    if (result >= 0 &&
        (!operand.hasOneUse() || operand.getDefiningOp<ReadOp>() || isa<BlockArgument>(operand))) {
      return std::nullopt;
    }
  }
  repeated.calls.push_back(first);
  for (CallOp call = second; call; call = nextCall(call)) {
    if (!continues(repeated.calls.back(), call, repeated.calls.size(), first, repeated)) {
      break;
    }
    repeated.calls.push_back(call);
  }
  return repeated.calls.size() > 1 ? std::optional(std::move(repeated)) : std::nullopt;
}

class Linearizer {
public:
  Linearizer(func::FuncOp section, const ModuleSymbols &symbols)
      : section(section), symbols(symbols), oldValues(symbols.variables.size(), -1),
        isAssigned(symbols.variables.size(), false) {}

  FailureOr<FlatSection> run() {
    flat.paths.push_back("");
    if (failed(enter(section, {}, 0))) {
      return failure();
    }
    while (!frames.empty()) {
      Operation *op = &*frames.back().next++;
      if (failed(visit(op))) {
        return failure();
      }
    }
    keepForRepeats();
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
    CallOp call = frames.back().call;
    if (call && repeat && call == repeat->calls.front()) {
      leaveRepeat(op);
    } else if (call) {
      for (auto [result, operand] : llvm::zip(call->getResults(), op->getOperands())) {
        numberOf[result] = numberOf.at(operand);
      }
    }
    active.erase(frames.back().function);
    frames.pop_back();
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
    if (auto call = dyn_cast<CallOp>(op)) {
      return visitCall(call);
    }
    if (auto assign = dyn_cast<AssignOp>(op)) {
      return visitAssign(assign);
    }
    if (auto read = dyn_cast<ReadOp>(op)) {
      visitRead(read);
    } else if (auto reshape = dyn_cast<ReshapeOp>(op)) {
      // The same elements in the same order: the same value, for all that follows.
      numberOf[reshape.getOutput()] = numberOf.at(reshape.getInput());
    } else if (llvm::any_of(op->getResultTypes(), llvm::IsaPred<ShapedType>) ||
               llvm::any_of(op->getOperandTypes(), llvm::IsaPred<ShapedType>)) {
      visitTensorOp(op);
    } else {
      visitIndexOp(op);
    }
    return success();
  }

  /// Takes the first and the last of the calls away; leaves nothing if less than two remain.
  std::optional<RepeatedCalls> peel(std::optional<RepeatedCalls> repeated) {
    if (!repeated) {
      return std::nullopt;
    }
    known.insert_range(repeated->calls);
    if (repeated->calls.size() < 4) {
      return std::nullopt;
    }
    repeated->calls.pop_back();
    repeated->calls.erase(repeated->calls.begin());
    return repeated;
  }

  /// Lists the calls that repeat `first` once.
  LogicalResult enterRepeat(CallOp first) {
    func::FuncOp function = symbols.functions.lookup(first.getCalleeAttr().getAttr());
    flat.repeats.push_back({function, static_cast<int32_t>(flat.ops.size()), 0, /*first=*/1,
                            static_cast<int64_t>(repeat->calls.size())});
    if (failed(enter(function, first, 0))) {
      return failure();
    }
    if (repeat->number >= 0) {
      Value number = function.getArgument(repeat->number);
      numberOf[number] = makeValue(number.getType());
      flat.values.back().isCallNumber = true;
    }
    return success();
  }

  void leaveRepeat(func::ReturnOp op) {
    flat.repeats.back().end = flat.ops.size();
    CallOp first = repeat->calls.front(), last = repeat->calls.back();
    for (auto [result, operand] : llvm::zip(last->getResults(), op->getOperands())) {
      numberOf[result] = numberOf.at(operand);
    }
    for (auto [position, result] : llvm::enumerate(repeat->carried)) {
      if (result >= 0) {
        flat.carries.push_back(
            {static_cast<uint32_t>(flat.repeats.size() - 1), op, static_cast<unsigned>(result),
             numberOf.at(first->getOperand(position)), numberOf.at(op->getOperand(result))});
      }
    }
    for (CallOp call : llvm::drop_begin(repeat->calls)) {
      listed.insert(call);
    }
    repeat.reset();
  }

  /// What each call of a repeat reads must last until its end, except what it replaces.
  void keepForRepeats() {
    llvm::DenseSet<uint32_t> carried;
    for (const FlatCarry &carry : flat.carries) {
      carried.insert(carry.before);
    }
    for (auto [number, value] : llvm::enumerate(flat.values)) {
      for (const FlatRepeat &repeated : flat.repeats) {
        if (value.definedAt < repeated.begin && value.lastRead >= repeated.begin &&
            value.lastRead < repeated.end && !carried.contains(number)) {
          value.lastRead = repeated.end;
        }
      }
    }
  }

  LogicalResult visitCall(CallOp call) {
    if (listed.contains(call)) {
      return success();
    }
    if (frames.size() == 1) {
      if (repeat && repeat->calls.front() == call) {
        return enterRepeat(call);
      }
      if (!repeat && !known.contains(call)) {
        repeat = peel(findRepeat(call));
      }
    }
    const std::string &parent = flat.paths[frames.back().path];
    std::string path = parent.empty() ? "" : parent + "/";
    path += call.getLabel();
    flat.paths.push_back(std::move(path));
    return enter(symbols.functions.lookup(call.getCalleeAttr().getAttr()), call,
                 flat.paths.size() - 1);
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
      flat.numbers.push_back(number);
    }
    for (Value result : op->getResults()) {
      uint32_t number = makeValue(result.getType());
      flat.values[number].definedAt = time;
      numberOf[result] = number;
      flat.numbers.push_back(number);
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
  FlatSection flat;
  std::vector<Frame> frames;
  llvm::DenseSet<Operation *> active;
  llvm::DenseMap<Value, uint32_t> numberOf;
  std::vector<int64_t> oldValues;
  std::vector<bool> isAssigned;
  /// The repeat that comes next or is being walked.
  std::optional<RepeatedCalls> repeat;
  /// Calls that a repeat has listed, and all calls that repeat others or are repeated.
  llvm::DenseSet<Operation *> listed, known;
};

} // namespace

FailureOr<FlatSection> weft::linearize(func::FuncOp section, const ModuleSymbols &symbols) {
  return Linearizer(section, symbols).run();
}
