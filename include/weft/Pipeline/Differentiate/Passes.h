//===- Passes.h - from the loss to the training step --------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PIPELINE_DIFFERENTIATE_PASSES_H
#define WEFT_PIPELINE_DIFFERENTIATE_PASSES_H

#include "weft/Description/Plan.h"
#include "weft/Dialect/Weft/IR/Weft.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

namespace weft {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "weft/Pipeline/Differentiate/Passes.h.inc"

/// As the passes without a second argument, with `plan` instead of a text where it is not null, and
/// then errors have the places of its entries. It must outlive the pass.
std::unique_ptr<mlir::Pass> createBuildGradientsPass(const BuildGradientsPassOptions &options,
                                                     const desc::PlanSpec *plan);
std::unique_ptr<mlir::Pass> createBuildUpdatesPass(const BuildUpdatesPassOptions &options,
                                                   const desc::PlanSpec *plan);

/// Appends the passes of the phase, in order. Values that backward needs are kept or recomputed as
/// `plan` says, and what Muon computes for several layers is computed for those of one of its
/// stages. `plan` may be null, and must outlive the passes.
void buildDifferentiatePipeline(mlir::OpPassManager &manager, const desc::PlanSpec *plan);

} // namespace weft

#endif // WEFT_PIPELINE_DIFFERENTIATE_PASSES_H
