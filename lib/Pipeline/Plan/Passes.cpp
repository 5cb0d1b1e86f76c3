//===- Passes.cpp - the order of the phase --------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Pipeline/Plan/Passes.h"

#include "weft/Dialect/Weft/IR/StageMarks.h"
#include "weft/Dialect/Weft/IR/Weft.h"
#include "weft/Pipeline/Plan/PadVariables.h"

#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace weft;

StepParts weft::makeStepParts(int64_t samples, int64_t accumulation,
                              const desc::PipelineSpec &pipeline) {
  StepParts parts;
  parts.microBatches.samples = samples;
  parts.microBatches.accumulation = accumulation;
  parts.stages.stages = pipeline.stages;
  parts.stages.layers.assign(pipeline.layers.begin(), pipeline.layers.end());
  if (pipeline.chunks > 1 || !pipeline.order.empty()) {
    std::vector<int64_t> places = pipeline.stagesOfChunks();
    parts.stages.placement.assign(places.begin(), places.end());
  }
  return parts;
}

/// Appends the passes that decide the sizes of variables.
static void buildPaddingPipeline(OpPassManager &manager, const StepParts &parts,
                                 const ApplyPlanPassOptions &plan, const PlanContext &context) {
  // First, while `?` still marks the batch: later passes see one micro-batch.
  manager.addPass(createAccumulateMicroBatchesPass(parts.microBatches));
  // Next, as a micro-batch is what passes through stages, and each op has one from here on.
  manager.addPass(createSplitStagesPass(parts.stages));
  // Then the functions of layers that entries tell apart: later passes ask for an op's entries.
  SeparateLayersPassOptions separate;
  separate.plan = plan.plan;
  separate.pins = plan.pins;
  manager.addPass(createSeparateLayersPass(separate, context.plan));
  // Then sizes, which all later passes need.
  SubstituteBatchPassOptions sizes;
  sizes.batch = parts.microBatches.samples / parts.microBatches.accumulation;
  manager.addPass(createSubstituteBatchPass(sizes));
  // From here on all axes divide the dimensions that they cut, and matmuls have the sizes that they
  // are priced with.
  PadDimensionsPassOptions pad;
  pad.plan = plan.plan;
  pad.pins = plan.pins;
  pad.alignRows = context.alignsRows;
  manager.addPass(createPadDimensionsPass(pad, context.plan));
  // Then variables alone, where their dimensions are not longer already.
  PadVariablesPassOptions store;
  store.plan = plan.plan;
  store.pins = plan.pins;
  store.open = context.padsOpenVariables;
  manager.addPass(createPadVariablesPass(store, context.plan));
}

bool weft::givesPadding(const desc::PlanSpec &plan, ModuleOp unplanned, ModuleOp planned,
                        int64_t samples, bool alignsRows) {
  OwningOpRef<ModuleOp> again = unplanned.clone();
  PassManager manager(again->getContext());
  StepParts parts = makeStepParts(samples, plan.accumulation, plan.pipeline);
  PlanContext context;
  context.plan = &plan;
  context.alignsRows = alignsRows;
  buildPaddingPipeline(manager, parts, {}, context);
  // Whoever reads a plan that cannot be followed gets the error.
  ScopedDiagnosticHandler handler(again->getContext(), [](Diagnostic &) { return success(); });
  if (failed(manager.run(*again))) {
    return true;
  }
  SymbolTable symbols(*again);
  // A variable that no stage uses is gone.
  return llvm::all_of(stageModulesOf(planned), [&](ModuleOp stage) {
    return llvm::all_of(stage.getOps<VariableOp>(), [&](VariableOp variable) {
      auto other = symbols.lookup<VariableOp>(variable.getSymName());
      return other.getTensorType().getShape() == variable.getTensorType().getShape();
    });
  });
}

void weft::buildApplyPlanPipeline(OpPassManager &manager, const StepParts &parts,
                                  const ApplyPlanPassOptions &plan, const PlanContext &context) {
  buildPaddingPipeline(manager, parts, plan, context);
  manager.addPass(createMaskPaddingPass());
  manager.addPass(createApplyPlanPass(plan, context.plan));
}

PlanResults weft::buildPlanPipeline(OpPassManager &manager, const StepParts &parts,
                                    const ApplyPlanPassOptions &plan,
                                    const SearchShardingsPassOptions &search,
                                    const PlanContext &context) {
  buildApplyPlanPipeline(manager, parts, plan, context);
  // Constraints in the module are on values; a plan is on ops and variables.
  manager.addPass(createResolveConstraintsPass());
  // Decides by cost what the plan leaves open.
  auto [searching, found] = makeShardingSearch(search, context.question);
  manager.addPass(std::move(searching));
  manager.addPass(createVerifyPlanPass());
  // Checks that the module has the cost that the search computed.
  PricePlanPassOptions price;
  price.machine = search.machine;
  price.fp8Matmuls = search.fp8Matmuls;
  auto [pricing, priced] = makePlanPricing(price, found);
  manager.addPass(std::move(pricing));
  return {found, priced};
}
