//===- VerifyStages.h - stages use their own values -------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_PLAN_VERIFYSTAGES_H
#define WEFT_LIB_PIPELINE_PLAN_VERIFYSTAGES_H

#include "mlir/IR/BuiltinOps.h"

namespace weft {

/// Checks a module that is split into stages: an op uses values and variables of its own stage,
/// those of no stage, and what is transferred to it. Fails with an error.
llvm::LogicalResult verifyStages(mlir::ModuleOp module);

} // namespace weft

#endif // WEFT_LIB_PIPELINE_PLAN_VERIFYSTAGES_H
