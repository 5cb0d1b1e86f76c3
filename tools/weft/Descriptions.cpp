//===- Descriptions.cpp - the descriptions that a compilation follows -----===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Descriptions.h"

#include "weft/Description/Pins.h"
#include "weft/Planner/ReviewPlan.h"

#include "llvm/Support/raw_ostream.h"

using namespace weft;

namespace {

/// Prints `diagnostics`; whether there were none.
bool report(const desc::Diagnostics &diagnostics) {
  llvm::errs() << desc::str(diagnostics);
  return diagnostics.empty();
}

} // namespace

std::optional<Descriptions> weft::readDescriptions(const CompileOptions &options) {
  auto machine = desc::loadMachine(options.machine);
  if (machine && options.nodes > 0) {
    machine = desc::withNodes(*machine, options.nodes);
  }
  auto recipe = desc::loadRecipe(options.recipe);
  auto plan = !options.plan.empty()   ? desc::loadPlan(options.plan)
              : !options.mesh.empty() ? desc::parseMesh(options.mesh)
                                      : desc::applyPins(options.pins);
  std::optional<desc::Result<desc::ModelSpec>> model;
  if (!options.startAfter) {
    model = desc::loadModel(options.input);
  }
  // Everything is reported before anything is given up.
  bool valid = !model || report(model->diagnostics());
  valid &= report(machine.diagnostics());
  valid &= report(recipe.diagnostics());
  valid &= report(plan.diagnostics());
  if (!valid) {
    return std::nullopt;
  }
  if (model && options.plan.empty() && options.mesh.empty()) {
    plan = desc::fitPins(*plan, **model);
  }
  Descriptions descriptions{std::nullopt, std::nullopt, *machine, *recipe, *plan};
  if (!model) {
    // Of the plan's rules only this one can be checked without the model.
    if (plan->ranks() > machine->devices()) {
      llvm::errs() << "weft compile: the plan is for " << plan->ranks() << " ranks, but machine '"
                   << machine->name << "' has " << machine->devices() << " devices\n";
      return std::nullopt;
    }
    return descriptions;
  }
  descriptions.model = **model;
  planner::PlanRequest request;
  request.mayPad = plan->mayPad;
  planner::PlanReview review = planner::reviewPlan(**model, *recipe, *machine, *plan, request);
  valid = report(review.errors);
  for (const desc::Diagnostic &warning : review.warnings) {
    llvm::errs() << "warning: " << warning.str() << "\n";
  }
  if (valid && descriptions.model->graph) {
    desc::Result<onnx::Graph> graph = onnx::loadGraph(descriptions.model->graph->path);
    valid = report(graph.diagnostics());
    if (valid) {
      descriptions.graph = std::move(*graph);
    }
  }
  return valid ? std::optional(std::move(descriptions)) : std::nullopt;
}
