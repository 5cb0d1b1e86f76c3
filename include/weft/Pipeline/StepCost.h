//===- StepCost.h - what a training step costs ----------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PIPELINE_STEPCOST_H
#define WEFT_PIPELINE_STEPCOST_H

#include "mlir/IR/BuiltinOps.h"

namespace weft {

/// Floating-point operations that a model asks for in one step on `batch` samples, all ranks
/// together (OpCost::modelFlops): what the ops of `@step` say of themselves, a layer counted as
/// often as it is called, and nothing that is computed again.
///
/// REQUIRES: the module is as Differentiate leaves it, with whole tensors and nothing padded.
double countStepFlops(mlir::ModuleOp module, int64_t batch);

} // namespace weft

#endif // WEFT_PIPELINE_STEPCOST_H
