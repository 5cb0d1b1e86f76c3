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

/// Convert between names of axes and their numbers in `mesh`.
planner::Axes toAxes(MeshAttr mesh, mlir::ArrayAttr axes);
mlir::ArrayAttr toAttribute(MeshAttr mesh, const planner::Axes &axes);
planner::Layout toLayout(ShardingAttr sharding);

/// Returns the predictor of times on `machine`, the text of a machine.proto message; null if the
/// text is empty. Fails, with an error of `pass` at `op`, if the text does not parse.
mlir::FailureOr<std::unique_ptr<cost::Predictor>>
makePredictor(mlir::Operation *op, llvm::StringRef pass, const std::string &machine);

/// Returns the problem of resharding a tensor of `type` between two shardings on the same mesh.
/// With `narrowReductions`, sums of float32 are sent as bf16.
planner::ReshardProblem makeReshardProblem(mlir::RankedTensorType type, ShardingAttr from,
                                           ShardingAttr to, bool narrowReductions = false);

} // namespace weft

#endif // WEFT_PIPELINE_RESHARDPROBLEM_H
