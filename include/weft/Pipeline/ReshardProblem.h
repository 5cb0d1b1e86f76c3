//===- ReshardProblem.h - between attributes and the planner's layouts ----===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PIPELINE_RESHARDPROBLEM_H
#define WEFT_PIPELINE_RESHARDPROBLEM_H

#include "weft/Cost/Predictor.h"
#include "weft/Dialect/Weft/IR/Weft.h"
#include "weft/Planner/Reshard.h"

namespace weft {

/// `axes` by their numbers in `mesh`, and back.
planner::Axes toAxes(MeshAttr mesh, mlir::ArrayAttr axes);
mlir::ArrayAttr toAttribute(MeshAttr mesh, const planner::Axes &axes);
planner::Layout toLayout(ShardingAttr sharding);

/// What predicts times on `machine`, the text of a machine.proto message as passes take it; null
/// for no text. Fails, with an error at `op`, where it does not parse.
mlir::FailureOr<std::unique_ptr<cost::Predictor>>
makePredictor(mlir::Operation *op, llvm::StringRef pass, const std::string &machine);

/// How to get a tensor of `type` from one sharding to another of the same mesh. Where
/// `narrowReductions` is set, float32 is added up as bf16.
planner::ReshardProblem makeReshardProblem(mlir::RankedTensorType type, ShardingAttr from,
                                           ShardingAttr to, bool narrowReductions = false);

} // namespace weft

#endif // WEFT_PIPELINE_RESHARDPROBLEM_H
