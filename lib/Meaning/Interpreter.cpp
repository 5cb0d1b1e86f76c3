//===- Interpreter.cpp - a program's functions and what it gives -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Interpreter.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace weft::meaning {

/// Uses of micro-batches are one use, as the program before Plan has none.
static std::string joinLabels(llvm::StringRef outer, llvm::StringRef inner) {
  bool isPart = inner.starts_with("micro-batch ");
  return isPart || inner.empty() ? outer.str()
         : outer.empty()         ? inner.str()
                                 : (outer + " " + inner).str();
}

/// The calls of a function from `first` on, where the first operand numbers micro-batches and each
/// call takes the totals of the call before; other operands are the same for all.
static SmallVector<CallOp> microBatchesFrom(CallOp first) {
  SmallVector<CallOp> calls;
  for (auto call : first->getBlock()->getOps<CallOp>()) {
    if (call.getCallee() != first.getCallee()) {
      continue;
    }
    APInt number;
    bool isNext = call.getNumOperands() >= call.getNumResults() + 1 &&
                  matchPattern(call->getOperand(0), m_ConstantInt(&number)) &&
                  number == uint64_t(calls.size());
    // First the totals, then what all micro-batches read.
    size_t totals = call.getNumResults();
    if (!isNext || (!calls.empty() &&
                    (!llvm::equal(call.getOperands().slice(1, totals), calls.back().getResults()) ||
                     call.getOperands().drop_front(1 + totals) !=
                         first.getOperands().drop_front(1 + totals)))) {
      return {};
    }
    calls.push_back(call);
  }
  bool isOnlyCarried =
      llvm::all_of(ArrayRef(calls).drop_back(calls.empty() ? 0 : 1), [&](CallOp call) {
        return llvm::all_of(call->getUsers(), [&](Operation *user) {
          return isa<CallOp>(user) && cast<CallOp>(user).getCallee() == first.getCallee();
        });
      });
  return calls.size() > 1 && calls.front() == first && isOnlyCarried ? calls
                                                                     : SmallVector<CallOp>();
}

std::optional<Evaluation::Ids>
Interpreter::callMicroBatches(ArrayRef<CallOp> calls,
                              const llvm::DenseMap<mlir::Value, uint32_t> &values,
                              llvm::StringRef label) {
  auto function = symbols.lookup<func::FuncOp>(CallOp(calls[0]).getCallee());
  if (gives(function)) {
    return std::nullopt; // Each by itself.
  }
  std::unique_ptr<Evaluation> all = evaluation.ofMicroBatches(int64_t(calls.size()));
  Interpreter inner(module, *all);
  Evaluation::Ids arguments = {all->keepNumber(all->getRanks().microBatch())};
  size_t results = function.getNumResults();
  for (auto [number, type] : llvm::enumerate(function.getArgumentTypes().slice(1, results))) {
    arguments.push_back(all->startTotal(unsigned(number), cast<RankedTensorType>(type)));
  }
  for (mlir::Value shared : CallOp(calls[0]).getOperands().drop_front(1 + results)) {
    arguments.push_back(all->repeat(evaluation, evaluation[values.lookup(shared)]));
  }
  Evaluation::Ids added = inner.call(function, arguments, label), totals;
  for (auto [number, value] : llvm::enumerate(added)) {
    const Value &own = (*all)[value];
    uint32_t start = values.lookup(CallOp(calls[0])->getOperand(unsigned(number) + 1));
    bool isOwn =
        own.total == number + 1 && own.term != kUnknown && !own.fault && all->isWholeTotal(own);
    std::optional<uint32_t> total =
        isOwn ? evaluation.total(*all, start, own) : std::optional<uint32_t>();
    if (!total) {
      return std::nullopt;
    }
    totals.push_back(*total);
  }
  return totals;
}

bool Interpreter::gives(func::FuncOp function) {
  auto [known, isNew] = giving.try_emplace(function, false);
  if (isNew) {
    bool does = llvm::any_of(function.getOps(), [&](Operation &op) {
      auto call = dyn_cast<CallOp>(op);
      return isa<ObserveOp, AssignOp>(op) ||
             (call && gives(symbols.lookup<func::FuncOp>(call.getCallee())));
    });
    giving[function] = does;
  }
  return giving[function];
}

void Interpreter::give(Operation *op, llvm::StringRef name, uint32_t value, llvm::StringRef label) {
  given.push_back({op, (name + (label.empty() ? "" : " of ") + label).str(), value});
}

Evaluation::Ids Interpreter::call(func::FuncOp function, ArrayRef<uint32_t> arguments,
                                  llvm::StringRef label) {
  Key key(function, arguments.vec());
  auto found = gives(function) ? known.end() : known.find(key);
  if (found != known.end()) {
    return found->second;
  }
  llvm::DenseMap<mlir::Value, uint32_t> values;
  for (auto [argument, value] : llvm::zip_equal(function.getArguments(), arguments)) {
    values[argument] = value;
  }
  return known[std::move(key)] = run(function, values, label);
}

Evaluation::Ids Interpreter::run(func::FuncOp function,
                                 llvm::DenseMap<mlir::Value, uint32_t> &values,
                                 llvm::StringRef label) {
  Evaluation::Ids operands;
  llvm::DenseSet<Operation *> done;
  llvm::DenseSet<Attribute> called;
  for (Operation &op : function.getOps()) {
    if (done.contains(&op)) {
      continue;
    }
    auto first = dyn_cast<CallOp>(op);
    if (first && called.insert(first.getCalleeAttr()).second) {
      SmallVector<CallOp> calls = microBatchesFrom(first);
      auto results = calls.empty() ? std::nullopt : callMicroBatches(calls, values, label);
      if (results) {
        done.insert(calls.begin(), calls.end());
        for (auto [result, value] : llvm::zip_equal(calls.back().getResults(), *results)) {
          values[result] = value;
        }
        continue;
      }
    }
    operands.clear();
    for (mlir::Value operand : op.getOperands()) {
      operands.push_back(values.lookup(operand));
    }
    if (auto observe = dyn_cast<ObserveOp>(op)) {
      give(&op, observe.getName(), operands[0], label);
    } else if (auto assign = dyn_cast<AssignOp>(op)) {
      give(&op, ("@" + assign.getVariable()).str(), operands[0], "");
    } else if (isa<func::ReturnOp>(op)) {
      break;
    } else {
      auto own = dyn_cast<CallOp>(op);
      Evaluation::Ids results = own ? call(symbols.lookup<func::FuncOp>(own.getCallee()), operands,
                                           joinLabels(label, own.getLabel()))
                                    : evaluation.evaluate(&op, operands, label);
      for (auto [result, value] : llvm::zip_equal(op.getResults(), results)) {
        values[result] = value;
      }
    }
  }
  return operands;
}

std::vector<Given> Interpreter::run(func::FuncOp root) {
  given.clear();
  call(root, {}, "");
  return std::move(given);
}

} // namespace weft::meaning
