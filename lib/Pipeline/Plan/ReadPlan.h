//===- ReadPlan.h - the plan that passes are given --------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_PLAN_READPLAN_H
#define WEFT_LIB_PIPELINE_PLAN_READPLAN_H

#include "weft/Description/Plan.h"

#include "mlir/IR/BuiltinOps.h"

namespace weft {

/// Returns the plan of a pass's options: `plan` is its text or, if that is empty, `pins` make it.
/// Fails with an error of the pass named `pass` at the module if the plan is not valid.
mlir::FailureOr<desc::PlanSpec> readPlan(mlir::ModuleOp module, llvm::StringRef pass,
                                         const std::string &plan,
                                         const std::vector<std::string> &pins);

} // namespace weft

#endif // WEFT_LIB_PIPELINE_PLAN_READPLAN_H
