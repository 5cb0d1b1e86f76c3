//===- StageFunctions.h - a micro-batch's function, stage by stage ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_PLAN_STAGEFUNCTIONS_H
#define WEFT_LIB_PIPELINE_PLAN_STAGEFUNCTIONS_H

#include "StagePositions.h"

namespace weft {

/// Replaces the function of one micro-batch by one function for each position that has ops. A call
/// of it becomes a call of each, in the order of positions, and transfers of the values that one
/// stage computes and another uses. A value goes to a stage once; later positions of that stage use
/// it again, as backward does with values that forward keeps for it. A variable of another stage is
/// read in the root, once, and is an argument. `calls` are all of its calls.
void splitMicroBatch(mlir::func::FuncOp function, llvm::ArrayRef<CallOp> calls,
                     const StageChunks &chunks, const StagePositions &positions);

} // namespace weft

#endif // WEFT_LIB_PIPELINE_PLAN_STAGEFUNCTIONS_H
