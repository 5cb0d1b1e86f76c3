//===- PadVariables.h - variables that a mesh does not divide -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PIPELINE_PLAN_PADVARIABLES_H
#define WEFT_PIPELINE_PLAN_PADVARIABLES_H

#include "weft/Description/Plan.h"

#include "mlir/IR/BuiltinOps.h"

namespace weft {

/// Returns true if some parameter or optimizer state can be cut by all ranks only with padding that
/// pad-variables adds with its option `open`: the plan leaves dimensions of it open, and its free
/// axes do not divide these. Safe to call from any thread.
bool hasOpenUnevenVariables(mlir::ModuleOp module, const desc::PlanSpec &plan);

/// Returns true if `plan`, read again, gives the variables of `unplanned`, a module before Plan,
/// the sizes that those of `planned` have, the same module after Plan or Schedule. `samples` are
/// those of a step, `alignsRows` is the option of pad-dimensions.
bool givesPadding(const desc::PlanSpec &plan, mlir::ModuleOp unplanned, mlir::ModuleOp planned,
                  int64_t samples, bool alignsRows);

} // namespace weft

#endif // WEFT_PIPELINE_PLAN_PADVARIABLES_H
