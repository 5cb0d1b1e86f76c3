//===- Passes.h - a sharding in the type of every tensor ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PIPELINE_PLAN_PASSES_H
#define WEFT_PIPELINE_PLAN_PASSES_H

#include "weft/Description/Plan.h"
#include "weft/Dialect/Weft/IR/AttributeNames.h"
#include "weft/Dialect/Weft/IR/Weft.h"
#include "weft/Pipeline/Plan/PricePlan.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

namespace weft {

struct ValueQuestion;

/// The mesh of the module that `op` is or stands in.
/// REQUIRES: the phase Plan has begun.
MeshAttr getMesh(mlir::Operation *op);

/// What a search has come to, of the function that decides: `step`.
struct SearchReport {
  /// What the choice takes: seconds of a step, without a machine bytes sent, and bytes of a rank
  /// for variables and for what is saved for backward.
  double seconds = 0, bytes = 0;
  /// No choice that plan and memory allow takes less.
  double lowerBound = 0;
  /// Whether some choice was found that fits into memory. If not, what was chosen is the smallest.
  bool fits = true;
  size_t decisions = 0;
  /// What it is made of, as price-plan finds it in the module.
  PlanPrice price;
};

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "weft/Pipeline/Plan/Passes.h.inc"

/// As createApplyPlanPass, where `plan` is not null with that instead of a text: entries then know
/// where they were written.
std::unique_ptr<mlir::Pass> createApplyPlanPass(const ApplyPlanPassOptions &options,
                                                const desc::PlanSpec *plan);

/// As createSearchShardingsPass; says in `report`, which may be null, what it has come to, and
/// answers `question`, which may be null: see ValueQuestion.h.
std::unique_ptr<mlir::Pass> createSearchShardingsPass(const SearchShardingsPassOptions &options,
                                                      SearchReport *report,
                                                      ValueQuestion *question = nullptr);

/// As createPricePlanPass; expects what `report` says then, where it is not null, and says in it
/// what that is made of.
std::unique_ptr<mlir::Pass> createPricePlanPass(const PricePlanPassOptions &options,
                                                SearchReport *report);

/// What passes of Plan are given that is not text; null for nothing.
struct PlanContext {
  /// The plan, as createApplyPlanPass takes it.
  const desc::PlanSpec *plan = nullptr;
  SearchReport *report = nullptr;
  ValueQuestion *question = nullptr;
};

/// The passes of the phase up to the search, in order: micro-batches, padding, and what the plan
/// pins.
void buildApplyPlanPipeline(mlir::OpPassManager &manager,
                            const AccumulateMicroBatchesPassOptions &parts,
                            const ApplyPlanPassOptions &plan, const PlanContext &context = {});

/// The passes of the phase, in order.
void buildPlanPipeline(mlir::OpPassManager &manager, const AccumulateMicroBatchesPassOptions &parts,
                       const ApplyPlanPassOptions &plan, const SearchShardingsPassOptions &search,
                       const PlanContext &context = {});

} // namespace weft

#endif // WEFT_PIPELINE_PLAN_PASSES_H
