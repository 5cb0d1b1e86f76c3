//===- WritePlan.h - the plan that a module follows -----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PIPELINE_PLAN_WRITEPLAN_H
#define WEFT_PIPELINE_PLAN_WRITEPLAN_H

#include "weft/Description/Plan.h"
#include "weft/Description/Strategies.h"

#include "mlir/IR/BuiltinOps.h"

namespace weft {

/// Returns the plan of `module` in few entries: the sharding of every variable and of every op,
/// from which the reshards follow. Planning the same module without shardings by this plan gives
/// `module` again, and its plan is this one. Reads only shardings, whatever their origin.
///
/// REQUIRES: the module is as Plan leaves it.
desc::PlanSpec writePlan(mlir::ModuleOp module);

/// Returns all that the plan's homes shard, but inputs: parameters and optimizer states, and with
/// them masters of rounded parameters and sums of gradients over micro-batches. Bytes are those of
/// all shards. REQUIRES: the module is as Plan leaves it.
std::vector<desc::VariableShape> listHomes(mlir::ModuleOp module);

} // namespace weft

#endif // WEFT_PIPELINE_PLAN_WRITEPLAN_H
