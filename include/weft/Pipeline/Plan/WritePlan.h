//===- WritePlan.h - the plan that a module follows -----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PIPELINE_PLAN_WRITEPLAN_H
#define WEFT_PIPELINE_PLAN_WRITEPLAN_H

#include "weft/Description/Plan.h"

#include "mlir/IR/BuiltinOps.h"

namespace weft {

/// What `module` follows, in few entries: where every variable lies, and how every op is sharded.
/// Where reshards stand follows from that. So a module without shardings becomes `module` by this
/// plan, and its plan is this one again. It looks at shardings only, wherever they come from.
///
/// REQUIRES: the module is as Plan leaves it.
desc::PlanSpec writePlan(mlir::ModuleOp module);

} // namespace weft

#endif // WEFT_PIPELINE_PLAN_WRITEPLAN_H
