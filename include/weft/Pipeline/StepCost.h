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

/// Floating-point operations of one step, all ranks together: what the ops of `@step` say of
/// themselves, a layer counted as often as it is called.
///
/// REQUIRES: the module is as Plan leaves it, with whole tensors and a batch of known size.
double countStepFlops(mlir::ModuleOp module);

} // namespace weft

#endif // WEFT_PIPELINE_STEPCOST_H
