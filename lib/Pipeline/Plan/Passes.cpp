//===- Passes.cpp - the order of the phase --------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Pipeline/Plan/Passes.h"

using namespace mlir;
using namespace weft;

void weft::buildApplyPlanPipeline(OpPassManager &manager,
                                  const AccumulateMicroBatchesPassOptions &parts,
                                  const ApplyPlanPassOptions &plan, const PlanContext &context) {
  // First, while `?` still tells the batch from other dimensions: what follows sees one
  // micro-batch.
  manager.addPass(createAccumulateMicroBatchesPass(parts));
  // And then at once: all that follows asks for sizes.
  SubstituteBatchPassOptions sizes;
  sizes.batch = parts.samples / parts.accumulation;
  manager.addPass(createSubstituteBatchPass(sizes));
  // From here on everything divides.
  PadDimensionsPassOptions pad;
  pad.plan = plan.plan;
  pad.pins = plan.pins;
  manager.addPass(createPadDimensionsPass(pad));
  manager.addPass(createMaskPaddingPass());
  manager.addPass(createApplyPlanPass(plan, context.plan));
}

PlanResults weft::buildPlanPipeline(OpPassManager &manager,
                                    const AccumulateMicroBatchesPassOptions &parts,
                                    const ApplyPlanPassOptions &plan,
                                    const SearchShardingsPassOptions &search,
                                    const PlanContext &context) {
  buildApplyPlanPipeline(manager, parts, plan, context);
  // What is said by hand of values in the module; a plan speaks of ops and variables.
  manager.addPass(createResolveConstraintsPass());
  // What the plan leaves open is decided by cost.
  auto [searching, found] = makeShardingSearch(search, context.question);
  manager.addPass(std::move(searching));
  manager.addPass(createVerifyPlanPass());
  // What the search has summed up is what it has written.
  PricePlanPassOptions price;
  price.machine = search.machine;
  price.fp8Matmuls = search.fp8Matmuls;
  auto [pricing, priced] = makePlanPricing(price, found);
  manager.addPass(std::move(pricing));
  return {found, priced};
}
