//===- StepCost.h - operations of a training step -------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PIPELINE_STEPCOST_H
#define WEFT_PIPELINE_STEPCOST_H

#include "mlir/IR/BuiltinOps.h"

namespace weft {

/// Returns the floating-point operations of the model in one step on `batch` samples, on all ranks
/// together: the sum of OpCost::modelFlops of the ops of `@step`. A layer counts for each call,
/// recomputed values do not count.
///
/// REQUIRES: the module is as Differentiate leaves it, with whole tensors and nothing padded.
double countStepFlops(mlir::ModuleOp module, int64_t batch);

} // namespace weft

#endif // WEFT_PIPELINE_STEPCOST_H
