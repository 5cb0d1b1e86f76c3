//===- Rivals.cpp - prices of known strategies ------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Driver/Rivals.h"

#include "support/Text.h"
#include "weft/Cost/PredictProgram.h"
#include "weft/Description/Pins.h"
#include "weft/Planner/ReviewPlan.h"

#include "llvm/Support/FormatVariadic.h"
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
  Rival rival{strategy.name, "", {}};
  descriptions.plan = desc::fitPins(strategy.plan, *descriptions.model);
  planner::PlanReview review = planner::reviewPlan(*descriptions.model, descriptions.recipe,
                                                   descriptions.machine, descriptions.plan);
  if (!review.errors.empty()) {
    rival.illegal = review.errors.front().message;
    return rival;
  }
  double room = double(descriptions.machine.device.memoryBytes);
  descriptions.machine = withoutMemoryLimit(descriptions.machine);
  CompileOptions shorter = options;
  shorter.stopAfter = Phase::Plan;
  Compilation compilation(shorter, descriptions);
  if (failed(compilation.begin()) || failed(compilation.runPhases())) {
    rival.illegal = "see above";
    return rival;
  }
  rival.search = compilation.getPlanFacts().search;
  rival.search.fits = rival.search.bytes <= room;
  return rival;
}

std::string weft::adviseAccumulation(const CompileOptions &options, Descriptions descriptions) {
  for (int64_t &count = descriptions.plan.accumulation *= 2;
       count <= descriptions.recipe.globalBatch; count *= 2) {
    planner::PlanReview review = planner::reviewPlan(*descriptions.model, descriptions.recipe,
                                                     descriptions.machine, descriptions.plan);
    if (!review.errors.empty()) {
      return "";
    }
    Compilation compilation(options, descriptions);
    if (failed(compilation.begin()) || failed(compilation.runPhases())) {
      return "";
    }
    const rt::Program &program = compilation.getProgram();
    if (compilation.fits()) {
      return llvm::formatv("; with --pin accumulation={0} it takes {1} and {2:F3} s a step", count,
                           rt::bytesText(program.deviceBytes()), cost::stepSeconds(program));
    }
  }
  return "";
}
