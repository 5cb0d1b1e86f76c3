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
#include "weft/Pipeline/Plan/ValueQuestion.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

#include <memory>

namespace weft {

/// The mesh of the module that `op` is or stands in.
/// REQUIRES: the phase Plan has begun.
MeshAttr getMesh(mlir::Operation *op);

/// What a search has come to, of the function that decides: `step`.
struct SearchReport {
  /// What the choice takes: seconds of a step, without a machine bytes sent, and bytes of a rank
  /// for variables and for what is saved for backward. Of several pipeline stages the mean: their
  /// work by itself, without what they wait for each other.
  double seconds = 0, bytes = 0;
  /// Below the predicted time of the step of every program that keeps the pins, which has its
  /// matmuls to compute, perhaps padded ones; 0 without a machine.
  double leastSeconds = 0;
  /// What the choice takes more, at most, than the least that any choice that fits adds up to, as a
  /// share of that. Of the choices that the search considers, see `searchesAll`.
  double gap = 0;
  /// Whether some choice was found that fits into memory. If not, what was chosen is the smallest.
  bool fits = true;
  size_t decisions = 0;
  /// If false, the mesh has so many parts that the search considers only some shardings.
  bool searchesAll = true;
};

/// What a search returns beside the shardings, which it writes into the module.
struct SearchResult {
  SearchReport report;
  /// Of the question, where one was asked.
  ValueAnswer answer;
};

/// A pass and its result, which is complete when the pass has run. Whoever runs the pass may keep
/// the result longer. Not for two threads at once.
template <typename Result> struct PassWithResult {
  std::unique_ptr<mlir::Pass> pass;
  std::shared_ptr<const Result> result;
};

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "weft/Pipeline/Plan/Passes.h.inc"

/// As the functions without a plan, where `plan` is not null with that instead of a text: entries
/// then know where they were written, and so do errors.
std::unique_ptr<mlir::Pass> createSeparateLayersPass(const SeparateLayersPassOptions &options,
                                                     const desc::PlanSpec *plan);
std::unique_ptr<mlir::Pass> createPadDimensionsPass(const PadDimensionsPassOptions &options,
                                                    const desc::PlanSpec *plan);
std::unique_ptr<mlir::Pass> createPadVariablesPass(const PadVariablesPassOptions &options,
                                                   const desc::PlanSpec *plan);
std::unique_ptr<mlir::Pass> createApplyPlanPass(const ApplyPlanPassOptions &options,
                                                const desc::PlanSpec *plan);

/// As createSearchShardingsPass; answers `question`, which may be null and must outlive the pass.
PassWithResult<SearchResult> makeShardingSearch(const SearchShardingsPassOptions &options,
                                                const ValueQuestion *question = nullptr);

/// As createPricePlanPass; expects the module to take what `search` has found by then.
PassWithResult<PlanPrice> makePlanPricing(const PricePlanPassOptions &options,
                                          std::shared_ptr<const SearchResult> search);

/// What passes of Plan read that is not text; null for nothing. Pointers must outlive the passes.
struct PlanContext {
  /// The plan, as createApplyPlanPass takes it.
  const desc::PlanSpec *plan = nullptr;
  const ValueQuestion *question = nullptr;
  /// The option `open` of pad-variables.
  bool padsOpenVariables = false;
  /// The option `align-rows` of pad-dimensions.
  bool alignsRows = false;
};

/// How a step is split before its tensors are: into micro-batches, and these into stages.
struct StepParts {
  AccumulateMicroBatchesPassOptions microBatches;
  SplitStagesPassOptions stages;
};

/// Returns the parts of a step of `samples` that a plan has.
StepParts makeStepParts(int64_t samples, int64_t accumulation, const desc::PipelineSpec &pipeline);

/// The results of the phase, complete when its passes have run.
struct PlanResults {
  std::shared_ptr<const SearchResult> search;
  /// What the search's plan is made of, as price-plan finds it in the module.
  std::shared_ptr<const PlanPrice> price;
};

/// The passes of the phase up to the search, in order: micro-batches, stages, padding, and what the
/// plan pins.
void buildApplyPlanPipeline(mlir::OpPassManager &manager, const StepParts &parts,
                            const ApplyPlanPassOptions &plan, const PlanContext &context = {});

/// Appends the passes of the phase, in order, and returns what they find when they run.
PlanResults buildPlanPipeline(mlir::OpPassManager &manager, const StepParts &parts,
                              const ApplyPlanPassOptions &plan,
                              const SearchShardingsPassOptions &search,
                              const PlanContext &context = {});

} // namespace weft

#endif // WEFT_PIPELINE_PLAN_PASSES_H
