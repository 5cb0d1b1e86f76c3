//===- StageSums.h - sums over micro-batches, stage by stage ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_PLAN_STAGESUMS_H
#define WEFT_LIB_PIPELINE_PLAN_STAGESUMS_H

#include "StagePositions.h"

namespace weft {

/// Lets each stage add up its own terms of a tensor that is a sum over micro-batches, such as the
/// gradient of an embedding that is the head. The function of a micro-batch and all of its calls,
/// which stand in their order in one root, get an argument and a result for each sum of another
/// stage. The root adds these up after the last call, in the stage where the function did:
///
///   %sum' = %sum + (%term_0 + %term_1)   ──▶   %sum_0' = %sum_0 + %term_0
///                                              %sum_1' = %sum_1 + %term_1
///
/// A sum in a narrow type stays as it is: its terms are rounded in their order, so those of other
/// stages go to it one by one.
///
/// `positions` are those of the function before. `calls` are replaced.
void separateSums(mlir::func::FuncOp function, llvm::MutableArrayRef<CallOp> calls,
                  const StageChunks &chunks, const StagePositions &positions);

} // namespace weft

#endif // WEFT_LIB_PIPELINE_PLAN_STAGESUMS_H
