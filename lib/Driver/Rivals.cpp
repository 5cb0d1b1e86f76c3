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

#include "llvm/Support/Regex.h"

using namespace weft;

/// The same machine with the most memory that a description may have.
static desc::MachineSpec withoutMemoryLimit(const desc::MachineSpec &machine) {
  std::string text =
      llvm::Regex("memory_bytes: *[0-9]+").sub("memory_bytes: 1125899906842624", machine.text);
  desc::Result<desc::MachineSpec> roomy = desc::parseMachine(text);
  return roomy ? *roomy : machine;
}

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
  descriptions.machine = withoutMemoryLimit(descriptions.machine);
  Compilation compilation(options, descriptions);
  if (failed(compilation.begin()) || failed(compilation.runPhases())) {
    rival.illegal = "see above";
    return rival;
  }
  rival.seconds = cost::stepSeconds(compilation.getProgram());
  rival.bytes = compilation.getProgram().deviceBytes();
  return rival;
}
