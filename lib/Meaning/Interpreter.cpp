//===- Interpreter.cpp - a program's functions and what it gives -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Interpreter.h"

using namespace mlir;

namespace weft::meaning {

/// Uses of micro-batches are one use, as the program before Plan has none.
static std::string joinLabels(llvm::StringRef outer, llvm::StringRef inner) {
  bool isPart = inner.starts_with("micro-batch ");
  return isPart || inner.empty() ? outer.str()
         : outer.empty()         ? inner.str()
                                 : (outer + " " + inner).str();
}

bool Interpreter::runTogether(const AlikeMicroBatches &found, Values &outside,
                              llvm::StringRef label) {
  ArrayRef<Operation *> ops = found.ops[1];
  if (llvm::any_of(ops, [&](Operation *op) { return gives(op); })) {
    return false; // Each by itself.
  }
  std::unique_ptr<Evaluation> all = evaluation.ofMicroBatches(int64_t(found.ops.size()));
  Interpreter inner(module, *all);
  Values values;
  values[found.number] = all->keepNumber(all->getRanks().microBatch());
  for (auto [number, total] : llvm::enumerate(found.totals)) {
    mlir::Value before = found.ops[0][total.op]->getResult(total.result);
    values[before] = all->startTotal(unsigned(number), cast<RankedTensorType>(before.getType()));
  }
  for (mlir::Value shared : found.shared) {
    values[shared] = all->repeat(evaluation, evaluation[outside.lookup(shared)]);
  }
  for (Operation *op : ops) {
    inner.run(op, values, label);
  }
  for (auto [number, total] : llvm::enumerate(found.totals)) {
    const Value &own = (*all)[values.lookup(ops[total.op]->getResult(total.result))];
    bool isOwn =
        own.total == number + 1 && own.term != kUnknown && !own.fault && all->isWholeTotal(own);
    std::optional<uint32_t> sum =
        isOwn ? evaluation.total(*all, outside.lookup(total.start), own) : std::nullopt;
    if (!sum) {
      return false;
    }
    outside[found.ops.back()[total.op]->getResult(total.result)] = *sum;
  }
  return true;
}

bool Interpreter::runMicroBatches(CallOp first, Values &values, llvm::DenseSet<Operation *> &done,
                                  llvm::StringRef label) {
  std::optional<AlikeMicroBatches> found = findMicroBatches(first);
  if (!found) {
    return false;
  }
  llvm::DenseSet<Operation *> repeated;
  for (ArrayRef<Operation *> ops : found->ops) {
    repeated.insert(ops.begin(), ops.end());
  }
  // What micro-batches read may stand between the ops of the first.
  for (Operation *op = first; op != found->ops[0].back(); op = op->getNextNode()) {
    if (!repeated.contains(op) && done.insert(op).second) {
      run(op, values, label);
    }
  }
  bool isRun = runTogether(*found, values, label);
  isRun ? done.insert(repeated.begin(), repeated.end()) : void();
  return isRun;
}

bool Interpreter::gives(Operation *op) {
  auto call = dyn_cast<CallOp>(op);
  if (!call) {
    return isa<ObserveOp, AssignOp>(op);
  }
  auto function = symbols.lookup<func::FuncOp>(call.getCallee());
  auto [known, isNew] = giving.try_emplace(function, false);
  if (isNew) {
    bool does = llvm::any_of(function.getOps(), [&](Operation &inner) { return gives(&inner); });
    giving[function] = does;
  }
  return giving[function];
}

void Interpreter::give(Operation *op, llvm::StringRef name, uint32_t value, llvm::StringRef label) {
  given.push_back({op, (name + (label.empty() ? "" : " of ") + label).str(), value});
}

Evaluation::Ids Interpreter::call(CallOp op, ArrayRef<uint32_t> arguments, llvm::StringRef label) {
  auto function = symbols.lookup<func::FuncOp>(op.getCallee());
  Key key(function, arguments.vec());
  auto found = gives(op) ? known.end() : known.find(key);
  if (found != known.end()) {
    return found->second;
  }
  Values values;
  for (auto [argument, value] : llvm::zip_equal(function.getArguments(), arguments)) {
    values[argument] = value;
  }
  return known[std::move(key)] = run(function, values, joinLabels(label, op.getLabel()));
}

/// The values of `operands`.
static Evaluation::Ids lookup(const llvm::DenseMap<mlir::Value, uint32_t> &values,
                              OperandRange operands) {
  Evaluation::Ids ids;
  for (mlir::Value operand : operands) {
    ids.push_back(values.lookup(operand));
  }
  return ids;
}

void Interpreter::run(Operation *op, Values &values, llvm::StringRef label) {
  Evaluation::Ids operands = lookup(values, op->getOperands());
  if (auto observe = dyn_cast<ObserveOp>(op)) {
    return give(op, observe.getName(), operands[0], label);
  }
  if (auto assign = dyn_cast<AssignOp>(op)) {
    return give(op, ("@" + assign.getVariable()).str(), operands[0], "");
  }
  auto own = dyn_cast<CallOp>(op);
  Evaluation::Ids results =
      own ? call(own, operands, label) : evaluation.evaluate(op, operands, label);
  for (auto [result, value] : llvm::zip_equal(op->getResults(), results)) {
    values[result] = value;
  }
}

Evaluation::Ids Interpreter::run(func::FuncOp function, Values &values, llvm::StringRef label) {
  llvm::DenseSet<Operation *> done;
  llvm::DenseSet<Attribute> called;
  for (Operation &op : function.getBody().front().without_terminator()) {
    if (done.contains(&op)) {
      continue;
    }
    auto first = dyn_cast<CallOp>(op);
    bool isFirst = first && called.insert(first.getCalleeAttr()).second;
    if (isFirst && runMicroBatches(first, values, done, label)) {
      continue;
    }
    run(&op, values, label);
  }
  return lookup(values, function.getBody().front().getTerminator()->getOperands());
}

std::vector<Given> Interpreter::run(func::FuncOp root) {
  given.clear();
  Values values;
  run(root, values, "");
  return std::move(given);
}

} // namespace weft::meaning
