//===- StageMarks.h - which pipeline stage an op belongs to ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PIPELINE_STAGEMARKS_H
#define WEFT_PIPELINE_STAGEMARKS_H

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

/// Returns the number of stages of a module that has several; 1 for one without stages.
inline int64_t countStages(mlir::ModuleOp module) {
  int64_t count = 1;
  for (auto function : module.getOps<mlir::func::FuncOp>()) {
    count = std::max(count, markedStageOf(function).value_or(0) + 1);
  }
  return count;
}

} // namespace weft

#endif // WEFT_PIPELINE_STAGEMARKS_H
