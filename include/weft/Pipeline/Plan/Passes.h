//===- Passes.h - a sharding in the type of every tensor ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PIPELINE_PLAN_PASSES_H
#define WEFT_PIPELINE_PLAN_PASSES_H

#include "weft/Dialect/Weft/IR/AttributeNames.h"
#include "weft/Dialect/Weft/IR/Weft.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

namespace weft {

/// The mesh of the module that `op` is or stands in.
/// REQUIRES: the phase Plan has begun.
MeshAttr getMesh(mlir::Operation *op);

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "weft/Pipeline/Plan/Passes.h.inc"

/// The passes of the phase, in order.
void buildPlanPipeline(mlir::OpPassManager &manager, const AccumulateMicroBatchesPassOptions &parts,
                       const ApplyPlanPassOptions &plan, const SearchShardingsPassOptions &search);

} // namespace weft

#endif // WEFT_PIPELINE_PLAN_PASSES_H
