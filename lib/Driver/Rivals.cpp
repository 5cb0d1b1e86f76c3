//===- Rivals.cpp - prices of known strategies ------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Driver/Rivals.h"

#include "weft/Cost/PredictProgram.h"
#include "weft/Description/Pins.h"
#include "weft/Planner/ReviewPlan.h"

using namespace mlir;
using namespace weft;

Rival weft::priceRival(const CompileOptions &options, Descriptions descriptions,
                       const desc::Strategy &strategy) {
  Rival rival;
  rival.name = strategy.name;
  descriptions.plan = desc::fitPins(strategy.plan, *descriptions.model);
  planner::PlanReview review = planner::reviewPlan(*descriptions.model, descriptions.recipe,
                                                   descriptions.machine, descriptions.plan);
  if (!review.errors.empty()) {
    rival.illegal = review.errors.front().message;
    return rival;
  }
  // In as many micro-batches as the plan, also where the strategy does not fit.
  descriptions.plan.accumulationLocation.file = strategy.name;
  Compilation compilation(options, descriptions);
  if (failed(compilation.begin())) {
    rival.illegal = "see above";
    return rival;
  }
  // Warnings are of the plan that is asked for alone.
  ScopedDiagnosticHandler handler(compilation.getModule().getContext(), [](Diagnostic &diagnostic) {
    return success(diagnostic.getSeverity() == DiagnosticSeverity::Warning);
  });
  if (failed(compilation.runPhases())) {
    rival.illegal = "see above";
    return rival;
  }
  rival.seconds = cost::stepSeconds(compilation.getPrograms());
  rival.bytes = compilation.deviceBytes();
  return rival;
}
