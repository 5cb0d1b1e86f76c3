//===- Descriptions.cpp - reads the descriptions of a compilation ---------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Driver/Descriptions.h"

#include "weft/Description/Pins.h"
#include "weft/Description/SplitForSearch.h"
#include "weft/Planner/ReviewPlan.h"

#include "llvm/Support/raw_ostream.h"

using namespace weft;

namespace {

/// Prints `diagnostics`; returns true if there are none.
bool report(const desc::Diagnostics &diagnostics) {
  llvm::errs() << desc::str(diagnostics);
  return diagnostics.empty();
}

/// Returns the text of the recipe's file, or without a file the default recipe of planning: AdamW
/// with clipping, in bf16 if the machine has it.
desc::Result<desc::RecipeSpec> readRecipe(const CompileOptions &options,
                                          const desc::Result<desc::MachineSpec> &machine) {
  auto number = [](int64_t value) { return std::to_string(value); };
  bool hasBF16 = machine && machine->device.peakFlops(desc::Precision::BF16);
  std::string text =
      "version: 1 adamw {} schedule { peak_learning_rate: 3e-4 } clip_norm: 1 steps: 1 "
      "precision: " +
      std::string(hasBF16 ? "BF16" : "F32") +
      " global_batch_samples: " + number(options.globalBatch);
  if (options.sequenceLength > 0) {
    text += " sequence_length: " + number(options.sequenceLength);
  }
  auto recipe = options.recipe.empty() ? desc::parseRecipe(text, "--global-batch")
                                       : desc::loadRecipe(options.recipe);
  if (recipe && options.sequenceLength > 0) {
    recipe->sequenceLength = options.sequenceLength;
    recipe->sequenceLengthLocation = {"--seq-len", 0, 0};
  }
  if (recipe && options.globalBatch > 0) {
    recipe->globalBatch = options.globalBatch;
  }
  return recipe;
}

} // namespace

std::optional<Descriptions> weft::readDescriptions(const CompileOptions &options) {
  auto machine = desc::loadMachine(options.machine);
  if (machine && options.nodes > 0) {
    machine = desc::withNodes(*machine, options.nodes);
  }
  auto recipe = readRecipe(options, machine);
  auto plan = !options.plan.empty() ? desc::loadPlan(options.plan)
                                    : desc::applyPins(options.pins, options.mesh);
  if (plan && !options.schedule.empty()) {
    plan = desc::withSchedule(std::move(*plan), options.schedule);
  }
  std::optional<desc::Result<desc::ModelSpec>> model;
  if (!options.startAfter) {
    model = desc::loadModel(options.input);
  }
  // Report the errors of all files before failing.
  bool valid = !model || report(model->diagnostics());
  valid &= report(machine.diagnostics());
  valid &= report(recipe.diagnostics());
  valid &= report(plan.diagnostics());
  if (!valid) {
    return std::nullopt;
  }
  if (model && options.plan.empty()) {
    plan = options.mesh.empty() ? desc::fitPins(*plan, **model)
                                : desc::splitForSearch(*plan, **model, *machine);
  }
  Descriptions descriptions{std::nullopt, std::nullopt, *machine, *recipe, *plan};
  if (!model) {
    // Without the model, this is the only rule of the plan that can be checked.
    if (plan->ranks() > machine->devices()) {
      llvm::errs() << "weft " << options.command << ": the plan is for " << plan->ranks()
                   << " ranks, but machine '" << machine->name << "' has " << machine->devices()
                   << " devices\n";
      return std::nullopt;
    }
    return descriptions;
  }
  descriptions.model = **model;
  planner::PlanRequest request;
  request.alignsRows = options.target == TargetKind::Cuda;
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

llvm::Expected<Descriptions> weft::openDescriptions(const CompileOptions &options,
                                                    llvm::Error (*check)(const CompileOptions &)) {
  if (llvm::Error error = check(options)) {
    return error;
  }
  if (options.ruleMutation) {
    plant(*options.ruleMutation);
  }
  std::optional<Descriptions> descriptions = readDescriptions(options);
  if (!descriptions) {
    return makeSilentError();
  }
  return std::move(*descriptions);
}
