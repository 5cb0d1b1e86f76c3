//===- VerifyStages.cpp - stages use their own values -----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "VerifyStages.h"

#include "StagePositions.h"

#include "weft/Pipeline/Plan/Passes.h"

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_VERIFYSTAGESPASS
#include "weft/Pipeline/Plan/Passes.h.inc"

namespace {

using Stage = std::optional<int64_t>;

std::string textOf(Stage stage) {
  return stage ? "stage " + std::to_string(*stage) : std::string("no stage");
}

class StageChecker {
public:
  explicit StageChecker(ModuleOp module) : symbols(module) {}

  LogicalResult checkRoot(func::FuncOp root);
  LogicalResult checkFunction(func::FuncOp function) const;

private:
  LogicalResult check(Operation &op);
  LogicalResult checkSymbol(Operation &op, Stage stage) const;

  SymbolTable symbols;
  /// The stages of values in roots; those that every stage has have none.
  llvm::DenseMap<Value, Stage> stages;
};

LogicalResult StageChecker::checkRoot(func::FuncOp root) {
  for (Operation &op : root.getBody().front().without_terminator()) {
    if (failed(check(op))) {
      return failure();
    }
  }
  return success();
}

LogicalResult StageChecker::checkFunction(func::FuncOp function) const {
  Stage stage = markedStageOf(function);
  for (Operation &op : function.getBody().front()) {
    if (failed(checkSymbol(op, stage))) {
      return failure();
    }
  }
  return success();
}

/// Checks an op of a root. One that is not marked, as later passes insert them, belongs to the
/// stage of its operands.
LogicalResult StageChecker::check(Operation &op) {
  auto transfer = dyn_cast<TransferOp>(op);
  Stage stage = transfer ? Stage(transfer.getFrom()) : markedStageOf(&op);
  for (Value operand : op.getOperands()) {
    Stage from = stages.lookup(operand);
    stage = stage ? stage : from;
    // What every stage has needs no transfer.
    if (from != stage && (from || transfer)) {
      return op.emitError("verify-stages: uses a value of ")
             << textOf(from) << ", but " << (transfer ? "comes from " : "belongs to ")
             << textOf(stage);
    }
  }
  for (Value result : op.getResults()) {
    stages[result] = transfer ? Stage(transfer.getTo()) : stage;
  }
  return checkSymbol(op, stage);
}

/// Checks the variable or the function that an op of `stage` uses.
LogicalResult StageChecker::checkSymbol(Operation &op, Stage stage) const {
  Operation *symbol = nullptr;
  if (auto read = dyn_cast<ReadOp>(op)) {
    symbol = symbols.lookup(read.getVariable());
  } else if (auto assign = dyn_cast<AssignOp>(op)) {
    symbol = symbols.lookup(assign.getVariable());
  } else if (auto call = dyn_cast<CallOp>(op)) {
    symbol = symbols.lookup(call.getCallee());
  }
  Stage used = symbol ? markedStageOf(symbol) : std::nullopt;
  if (used && used != stage) {
    return op.emitError("verify-stages: uses '")
           << SymbolTable::getSymbolName(symbol).getValue() << "' of " << textOf(used)
           << ", but belongs to " << textOf(stage);
  }
  return success();
}

struct VerifyStagesPass : impl::VerifyStagesPassBase<VerifyStagesPass> {
  void runOnOperation() override {
    if (failed(verifyStages(getOperation()))) {
      return signalPassFailure();
    }
    markAllAnalysesPreserved();
  }
};

} // namespace

LogicalResult verifyStages(ModuleOp module) {
  StageChecker checker(module);
  for (auto function : module.getOps<func::FuncOp>()) {
    bool isOfStage = markedStageOf(function).has_value();
    if ((isOfStage && failed(checker.checkFunction(function))) ||
        (!function.isPrivate() && failed(checker.checkRoot(function)))) {
      return failure();
    }
  }
  return success();
}

} // namespace weft
