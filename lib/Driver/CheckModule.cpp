//===- CheckModule.cpp - whether a module suits its descriptions ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CheckModule.h"

#include "weft/Dialect/Weft/IR/AttributeNames.h"
#include "weft/Dialect/Weft/IR/StageMarks.h"
#include "weft/Dialect/Weft/IR/Weft.h"
#include "weft/Pipeline/ModuleSizes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include "llvm/ADT/StringExtras.h"

#include <map>
#include <set>

using namespace mlir;
using namespace weft;

namespace {

std::string activationsText(const std::vector<std::string> &entries) {
  return entries.empty() ? "no activation entries" : "activation " + llvm::join(entries, ", ");
}

/// Return the entries that a module was differentiated with, and those of a plan, as one text.
std::string activationsOf(ModuleOp module) {
  std::vector<std::string> texts;
  if (auto entries = module->getAttrOfType<ArrayAttr>(kActivationsAttrName)) {
    llvm::append_range(texts, entries.getAsValueRange<StringAttr>());
  }
  return activationsText(texts);
}
std::string activationsOf(const desc::PlanSpec &plan) {
  std::vector<std::string> texts;
  for (const desc::ActivationSpec &entry : plan.activations) {
    texts.push_back(entry.text());
  }
  return activationsText(texts);
}

/// "4 pipeline stages".
std::string stagesText(int64_t stages) {
  return stages == 1 ? "no pipeline stages" : std::to_string(stages) + " pipeline stages";
}

/// "the mesh dp=2 tp=4" or "one rank".
std::string meshText(const MeshParts &parts) {
  return parts.axes().empty() ? "one rank" : "the mesh " + parts.text();
}

} // namespace

std::string weft::idleAxisOf(ModuleOp module, const desc::PlanSpec &request) {
  std::set<std::string> known, splitting;
  for (VariableOp variable : module.getOps<VariableOp>()) {
    for (StringAttr dimension : variable.getDimensions().getAsRange<StringAttr>()) {
      known.insert(dimension.str());
    }
  }
  std::map<std::string, std::vector<std::string>> missing;
  std::vector<desc::ShardingSpec> entries = request.shardings;
  entries.insert(entries.end(), request.homes.begin(), request.homes.end());
  for (const desc::ShardingSpec &sharding : entries) {
    for (const std::string &axis : sharding.axes) {
      if (known.count(sharding.dimension) || desc::isOpDimension(sharding.dimension)) {
        splitting.insert(axis);
      } else {
        missing[axis].push_back(sharding.dimension);
      }
    }
  }
  for (const auto &[axis, dimensions] : missing) { // legal_r1
    if (!splitting.count(axis)) {
      return "axis '" + axis + "' of the plan splits nothing: the model has no dimension " +
             llvm::join(dimensions, ", ") + ", only " + llvm::join(known, ", ");
    }
  }
  return "";
}

std::string weft::mismatchOf(ModuleOp module, const std::string &input,
                             const desc::RecipeSpec &recipe, const desc::PlanSpec &plan) {
  ModuleSizes sizes = sizesOf(module);
  const std::string file = "'" + input + "'";
  auto mismatch = [&](const std::string &what, int64_t got, int64_t expected) {
    return file + " has " + std::to_string(got) + " " + what + ", but the recipe says " +
           std::to_string(expected);
  };
  if (sizes.sequence != 0 && sizes.sequence != recipe.sequenceLength) {
    return mismatch("tokens in a sequence", sizes.sequence, recipe.sequenceLength);
  }
  if (sizes.batch != 0 && sizes.batch != recipe.globalBatch) {
    return mismatch("sequences in a batch", sizes.batch, recipe.globalBatch);
  }
  bool isDifferentiated = stageModulesOf(module).front().lookupSymbol("step") != nullptr;
  if (isDifferentiated && activationsOf(module) != activationsOf(plan)) {
    return file + " was differentiated with " + activationsOf(module) + ", but the plan has " +
           activationsOf(plan);
  }
  auto mesh = module->getAttrOfType<MeshAttr>(kMeshAttrName);
  if (!mesh) {
    return "";
  }
  if (sizes.sequence != 0 && sizes.microBatches != plan.accumulation) {
    return file + " has " + std::to_string(sizes.microBatches) +
           " micro-batches, but the plan says " + std::to_string(plan.accumulation);
  }
  if (countStages(module) != plan.pipeline.stages) {
    return file + " has " + stagesText(countStages(module)) + ", but the plan has " +
           stagesText(plan.pipeline.stages);
  }
  MeshParts got = mesh.getParts(), expected = plan.parts();
  if (got.partNames() != expected.partNames() || got.partSizes() != expected.partSizes()) {
    return file + " is for " + meshText(got) + ", but the plan is for " + meshText(expected);
  }
  return "";
}
