//===- StageRoots.cpp - the stages of ops that run once in a step -----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StageRoots.h"

#include "weft/Dialect/Weft/IR/InlineCall.h"

using namespace mlir;

namespace weft {

namespace {

bool isScalar(Value value) {
  auto tensor = dyn_cast<RankedTensorType>(value.getType());
  return !tensor || tensor.getRank() == 0;
}

} // namespace

void RootStages::run(func::FuncOp root) {
  Block &body = root.getBody().front();
  for (Operation *op = &body.front(); op != body.getTerminator();) {
    auto call = dyn_cast<CallOp>(op);
    if (call && isOfSeveralStages(call)) {
      op = replaceByBody(call);
    } else {
      visit(op);
      op = op->getNextNode();
    }
  }
}

/// Returns the variable that `op` reads or assigns, null for other ops and for inputs.
VariableOp RootStages::variableOf(Operation *op) const {
  VariableOp variable;
  if (auto read = dyn_cast_or_null<ReadOp>(op)) {
    variable = symbols.lookup<VariableOp>(read.getVariable());
  } else if (auto assign = dyn_cast_or_null<AssignOp>(op)) {
    variable = symbols.lookup<VariableOp>(assign.getVariable());
  }
  return variable && variable.getRole() != VariableRole::Input ? variable : VariableOp();
}

std::optional<int64_t> RootStages::stageOf(Value value) const {
  Operation *definition = value.getDefiningOp();
  auto transfer = dyn_cast<TransferOp>(definition);
  return transfer ? std::optional<int64_t>(transfer.getTo()) : markedStageOf(definition);
}

/// An op lies where the variables are that it reads, else where its tensors are: scalars move. The
/// last of several stages is the one to which sums over all parameters go.
std::optional<int64_t> RootStages::stageOfOperands(Operation *op) const {
  std::optional<int64_t> ofVariables, ofTensors, ofScalars;
  for (Value operand : op->getOperands()) {
    if (std::optional<int64_t> stage = stageOf(operand)) {
      std::optional<int64_t> &greatest = isScalar(operand)                 ? ofScalars
                                         : operand.getDefiningOp<ReadOp>() ? ofVariables
                                                                           : ofTensors;
      greatest = std::max(greatest.value_or(0), *stage);
    }
  }
  return ofVariables ? ofVariables : ofTensors ? ofTensors : ofScalars;
}

/// A function for several parameters, such as that of the update outside of layers. Those of
/// micro-batches belong to one stage, even if they get a parameter of another.
bool RootStages::isOfSeveralStages(CallOp call) const {
  if (markedStageOf(symbols.lookup(call.getCallee()))) {
    return false;
  }
  std::optional<int64_t> first;
  for (Value operand : call.getOperands()) {
    std::optional<int64_t> stage = isScalar(operand) ? std::nullopt : stageOf(operand);
    if (stage && first.value_or(*stage) != *stage) {
      return true;
    }
    first = stage ? stage : first;
  }
  return false;
}

/// Returns the first op that takes the place of `call`.
Operation *RootStages::replaceByBody(CallOp call) {
  auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
  Operation *after = call->getNextNode();
  SmallVector<Operation *> copies = inlineCall(call, callee);
  if (SymbolTable::symbolKnownUseEmpty(callee, callee->getParentOp())) {
    symbols.erase(callee);
  }
  return copies.empty() ? after : copies.front();
}

/// Returns the stage of an op; nothing if it needs inputs and constants alone.
std::optional<int64_t> RootStages::choose(Operation *op) const {
  if (std::optional<int64_t> stage = markedStageOf(op)) {
    return stage;
  }
  if (VariableOp variable = variableOf(op)) {
    if (std::optional<int64_t> stage = markedStageOf(variable)) {
      return stage;
    }
  }
  if (auto call = dyn_cast<CallOp>(op)) {
    auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
    if (std::optional<int64_t> stage = markedStageOf(callee)) {
      return stage;
    }
  }
  if (std::optional<int64_t> stage = stageOfOperands(op)) {
    return stage;
  }
  bool usesVariable = llvm::any_of(
      op->getOperands(), [&](Value operand) { return bool(variableOf(operand.getDefiningOp())); });
  return usesVariable || op->getNumResults() == 0 ? std::optional<int64_t>(last) : std::nullopt;
}

void RootStages::visit(Operation *op) {
  if (isa<TransferOp>(op)) {
    return;
  }
  std::optional<int64_t> stage = choose(op);
  if (!stage) {
    return;
  }
  markStage(op, *stage);
  if (VariableOp variable = variableOf(op)) {
    markStage(variable, *stage);
  }
  for (OpOperand &operand : op->getOpOperands()) {
    moveTo(operand, *stage);
  }
}

/// Lets an op of `stage` use its operand.
void RootStages::moveTo(OpOperand &operand, int64_t stage) {
  Operation *definition = operand.get().getDefiningOp();
  VariableOp variable = variableOf(definition);
  if (variable && !markedStageOf(definition)) {
    // The first op that uses the variable.
    if (!markedStageOf(variable)) {
      markStage(variable, stage);
    }
    markStage(definition, *markedStageOf(variable));
  }
  std::optional<int64_t> from = stageOf(operand.get());
  if (!from || *from == stage) {
    return;
  }
  Value &result = transferred[{operand.get(), stage}];
  if (!result) {
    OpBuilder builder(operand.getOwner());
    result = TransferOp::create(builder, operand.get().getLoc(), operand.get().getType(),
                                operand.get(), *from, stage);
  }
  operand.set(result);
}

} // namespace weft
