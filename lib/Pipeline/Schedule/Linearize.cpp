//===- Linearize.cpp - a section with its calls inlined -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Linearize.h"

#include "weft/Dialect/Weft/IR/AttributeNames.h"

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

/// Calls of a function of one micro-batch that repeat one another. The first operand is their
/// number.
struct RepeatedCalls {
  SmallVector<CallOp> calls;
  /// For each operand, the result that the next call gets there, or -1.
  SmallVector<int64_t> carried;
};

bool isOfMicroBatch(func::FuncOp function) {
  return function && function->hasAttr(kMicroBatchAttrName) && function.getNumArguments() > 0 &&
         function.getArgumentTypes()[0].isIndex();
}

/// Returns the next op, except for numbers, if it is a call of the same function.
CallOp nextCall(CallOp call) {
  Operation *next = call->getNextNode();
  while (isa_and_nonnull<arith::ConstantIndexOp>(next)) {
    next = next->getNextNode();
  }
  auto other = dyn_cast_or_null<CallOp>(next);
  return other && other.getCallee() == call.getCallee() ? other : CallOp();
}

/// Returns true if `call`, the `number`th, gets from the call before it what `carried` says, and
/// else the same as that, and nothing else reads that call's results.
bool continues(CallOp before, CallOp call, int64_t number, ArrayRef<int64_t> carried) {
  auto own = call.getOperand(0).getDefiningOp<arith::ConstantIndexOp>();
  if (!own || own.value() != number) {
    return false;
  }
  for (size_t position = 1; position < carried.size(); ++position) {
    Value expected = carried[position] >= 0 ? Value(before->getResult(carried[position]))
                                            : before->getOperand(position);
    if (call->getOperand(position) != expected) {
      return false;
    }
  }
  return llvm::all_of(before->getUsers(), [&](Operation *user) { return user == call; });
}

/// Returns the calls from `first` on, that of micro-batch 0.
RepeatedCalls findRepeat(CallOp first) {
  RepeatedCalls repeated = {{first}, SmallVector<int64_t>(first->getNumOperands(), -1)};
  CallOp second = nextCall(first);
  for (OpOperand &operand : second ? second->getOpOperands() : MutableArrayRef<OpOperand>()) {
    auto result = dyn_cast<OpResult>(operand.get());
    if (result && result.getOwner() == first) {
      repeated.carried[operand.getOperandNumber()] = result.getResultNumber();
    }
  }
  for (CallOp call = second;
       call && continues(repeated.calls.back(), call, repeated.calls.size(), repeated.carried);
       call = nextCall(call)) {
    repeated.calls.push_back(call);
  }
  return repeated;
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
    } else if (isa<AgreeOp>(op)) {
      flat.agreedAt = static_cast<int32_t>(flat.ops.size());
      visitTensorOp(op);
    } else if (llvm::any_of(op->getResultTypes(), llvm::IsaPred<ShapedType>) ||
               llvm::any_of(op->getOperandTypes(), llvm::IsaPred<ShapedType>)) {
      visitTensorOp(op);
    } else {
      visitIndexOp(op);
    }
    return success();
  }

  /// Leaves the first and the last of the calls out; none if less than two remain.
  std::optional<RepeatedCalls> findMiddle(CallOp first) {
    RepeatedCalls repeated = findRepeat(first);
    known.insert_range(repeated.calls);
    if (repeated.calls.size() < 4) {
      return std::nullopt;
    }
    repeated.calls.pop_back();
    repeated.calls.erase(repeated.calls.begin());
    return repeated;
  }

  /// Lists the calls that repeat `first` once.
  LogicalResult enterRepeat(CallOp first, func::FuncOp function) {
    flat.repeats.push_back({function, static_cast<int32_t>(flat.ops.size()), 0, /*first=*/1,
                            static_cast<int64_t>(repeat->calls.size())});
    if (failed(enter(function, first, 0))) {
      return failure();
    }
    Value number = function.getArgument(0);
    numberOf[number] = makeValue(number.getType());
    flat.values.back().isMicroBatch = true;
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
    func::FuncOp function = symbols.functions.lookup(call.getCalleeAttr().getAttr());
    if (repeat && repeat->calls.front() == call) {
      return enterRepeat(call, function);
    }
    if (frames.size() == 1 && isOfMicroBatch(function) && !known.contains(call)) {
      repeat = findMiddle(call);
    }
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
  /// Calls that a repeat has listed, and all calls of micro-batches that were looked at.
  llvm::DenseSet<Operation *> listed, known;
};

} // namespace

FailureOr<FlatSection> weft::linearize(func::FuncOp section, const ModuleSymbols &symbols) {
  return Linearizer(section, symbols).run();
}
