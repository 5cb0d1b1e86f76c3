//===- ScalarSums.h - sums of scalars of a root, stage by stage -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_PLAN_SCALARSUMS_H
#define WEFT_LIB_PIPELINE_PLAN_SCALARSUMS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace weft {

/// Lets each stage add up its own terms of a scalar, such as the norm that clips gradients, and
/// send the sum in place of the terms. Terms of one stage keep their order:
///
///   %3 = weft.transfer %0 from 0 to 1          %3 = %0 + %1               in stage 0
///   %4 = %3 + %2               in stage 1  ──▶  %4 = weft.transfer %3 from 0 to 1
///   %5 = weft.transfer %1 from 0 to 1          %5 = %4 + %2               in stage 1
///   %6 = %4 + %5               in stage 1
///
/// REQUIRES: the ops of `root` have their stages.
void separateScalarSums(mlir::func::FuncOp root);

} // namespace weft

#endif // WEFT_LIB_PIPELINE_PLAN_SCALARSUMS_H
