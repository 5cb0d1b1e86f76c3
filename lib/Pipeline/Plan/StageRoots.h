//===- StageRoots.h - the stages of ops that run once in a step -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_PLAN_STAGEROOTS_H
#define WEFT_LIB_PIPELINE_PLAN_STAGEROOTS_H

#include "StagePositions.h"

namespace weft {

/// Marks the ops of a root with their stages, and transfers what one stage computes and another
/// uses. The order of the roots matters: a variable that no function of a micro-batch reads, such
/// as the state of an optimizer, belongs to the stage of the first op that uses it.
class RootStages {
public:
  /// `last` is the stage that computes the loss.
  RootStages(mlir::ModuleOp module, int64_t last) : symbols(module), last(last) {}

  void run(mlir::func::FuncOp root);

private:
  VariableOp variableOf(mlir::Operation *op) const;
  std::optional<int64_t> stageOf(mlir::Value value) const;
  std::optional<int64_t> stageOfOperands(mlir::Operation *op) const;
  std::optional<int64_t> choose(mlir::Operation *op) const;
  bool isOfSeveralStages(CallOp call) const;
  mlir::Operation *replaceByBody(CallOp call);
  void visit(mlir::Operation *op);
  void moveTo(mlir::OpOperand &operand, int64_t stage);

  mlir::SymbolTable symbols;
  /// The last stage, which computes the loss.
  int64_t last;
  llvm::DenseMap<std::pair<mlir::Value, int64_t>, mlir::Value> transferred;
};

} // namespace weft

#endif // WEFT_LIB_PIPELINE_PLAN_STAGEROOTS_H
