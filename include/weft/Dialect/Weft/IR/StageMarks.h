//===- StageMarks.h - which pipeline stage an op belongs to ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DIALECT_WEFT_IR_STAGEMARKS_H
#define WEFT_DIALECT_WEFT_IR_STAGEMARKS_H

#include "weft/Dialect/Weft/IR/AttributeNames.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

#include <algorithm>
#include <optional>

namespace weft {

/// Returns the stage that `op` is marked with, if any.
inline std::optional<int64_t> markedStageOf(mlir::Operation *op) {
  auto stage = op->getAttrOfType<mlir::IntegerAttr>(kStageAttrName);
  return stage ? std::optional<int64_t>(stage.getInt()) : std::nullopt;
}

inline void markStage(mlir::Operation *op, int64_t stage) {
  auto type = mlir::IntegerType::get(op->getContext(), 64);
  op->setAttr(kStageAttrName, mlir::IntegerAttr::get(type, stage));
}

/// Returns the chunk of the model that a function or a variable of a stage belongs to: its mark, or
/// the number of the stage, which needs no mark.
inline std::optional<int64_t> markedChunkOf(mlir::Operation *op) {
  auto chunk = op->getAttrOfType<mlir::IntegerAttr>(kChunkAttrName);
  return chunk ? std::optional<int64_t>(chunk.getInt()) : markedStageOf(op);
}

inline void markChunk(mlir::Operation *op, int64_t chunk, int64_t stage) {
  markStage(op, stage);
  if (chunk != stage) {
    auto type = mlir::IntegerType::get(op->getContext(), 64);
    op->setAttr(kChunkAttrName, mlir::IntegerAttr::get(type, chunk));
  }
}

/// Returns the modules that separate-stages has made of `module`, in the order of stages; if there
/// are none, the module itself.
inline llvm::SmallVector<mlir::ModuleOp> stageModulesOf(mlir::ModuleOp module) {
  llvm::SmallVector<mlir::ModuleOp> modules;
  for (auto inner : module.getOps<mlir::ModuleOp>()) {
    if (inner->hasAttr(kStagesAttrName)) {
      modules.push_back(inner);
    }
  }
  return modules.empty() ? llvm::SmallVector<mlir::ModuleOp>{module} : modules;
}

/// Returns the number of stages of a module that has several, in it or in modules of their own; 1
/// for one without stages.
inline int64_t countStages(mlir::ModuleOp module) {
  auto count = static_cast<int64_t>(stageModulesOf(module).size());
  for (auto function : module.getOps<mlir::func::FuncOp>()) {
    count = std::max(count, markedStageOf(function).value_or(0) + 1);
  }
  return count;
}

} // namespace weft

#endif // WEFT_DIALECT_WEFT_IR_STAGEMARKS_H
