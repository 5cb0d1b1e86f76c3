//===- Validate.cpp - rules between several descriptions ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Description/Validate.h"

#include "Text.h"

#include <algorithm>

namespace weft::desc {

/// Returns the dimensions of a model, with their sizes.
static std::vector<std::pair<std::string, int64_t>> dimensionsOf(const ModelSpec &model,
                                                                 const RecipeSpec &recipe) {
  if (model.graph) {
    return {{"batch", recipe.globalBatch}};
  }
  std::vector<std::pair<std::string, int64_t>> dimensions = {
      {"batch", recipe.globalBatch},
      {"sequence", recipe.sequenceLength},
      {"keys", recipe.sequenceLength},
      {"kv_heads", model.kvHeads},
      {"group", model.group()},
      {"head", model.headSize},
      {"ffn", model.ffn},
      {"vocab", model.vocabulary},
      {"hidden", model.hidden},
  };
  if (model.latent) {
    dimensions.emplace_back("latent", model.latent->keyValueRank);
    dimensions.emplace_back("query_latent", model.latent->queryRank);
    dimensions.emplace_back("rotary", model.latent->rotarySize);
    dimensions.emplace_back("plain", model.headSize - model.latent->rotarySize);
    dimensions.emplace_back("value", model.latent->valueSize);
  }
  if (model.experts) {
    dimensions.emplace_back("experts", model.experts->count);
    // MLPs of different sizes share one name of their inner dimension.
    dimensions.emplace_back("ffn", model.experts->ffn);
    if (model.experts->sharedFfn > 0) {
      dimensions.emplace_back("ffn", model.experts->sharedFfn);
    }
  }
  if (model.positions == PositionKind::Learned) {
    dimensions.emplace_back("positions", model.maximumLength);
  }
  return dimensions;
}

std::optional<int64_t> dimensionSize(const ModelSpec &model, const RecipeSpec &recipe,
                                     std::string_view dimension) {
  for (const auto &[name, size] : dimensionsOf(model, recipe)) {
    if (name == dimension) {
      return size;
    }
  }
  return std::nullopt;
}

/// together_r9.
static void checkDocuments(const ModelSpec &model, const RecipeSpec &recipe,
                           Diagnostics &diagnostics) {
  if (!recipe.documentEnd) {
    return;
  }
  auto error = [&](const char *field, const std::string &message) {
    diagnostics.push_back({recipe.documentsLocation, field, "together_r9", message});
  };
  if (model.graph) {
    error("documents", "has no effect, as model " + model.name +
                           " is a graph, which defines its attention itself");
  } else if (*recipe.documentEnd >= model.vocabulary) {
    error("documents.end", "expected a token of model " + model.name + ", 0 to " +
                               detail::text(model.vocabulary - 1) + ", got " +
                               detail::text(*recipe.documentEnd));
  }
}

Diagnostics validateTogether(const ModelSpec &model, const RecipeSpec &recipe,
                             const MachineSpec &machine) {
  Diagnostics diagnostics;
  // together_r1
  if (model.maximumLength > 0 && recipe.sequenceLength > model.maximumLength) {
    diagnostics.push_back({recipe.sequenceLengthLocation, "sequence_length", "together_r1",
                           "expected at most maximum_length " + detail::text(model.maximumLength) +
                               " of model " + model.name + ", got " +
                               detail::text(recipe.sequenceLength)});
  }
  // together_r3
  if (!model.graph && recipe.sequenceLength == 0) {
    diagnostics.push_back({recipe.sequenceLengthLocation, "sequence_length", "together_r3",
                           "missing, expected the length of the sequences that model " +
                               model.name + " is trained on"});
  }
  // together_r4
  if (model.graph && model.graph->batchNormGroup > 0 &&
      recipe.globalBatch % model.graph->batchNormGroup != 0) {
    diagnostics.push_back({model.graph->groupLocation, "graph.batch_norm_group", "together_r4",
                           "expected a divisor of the batch of " +
                               detail::text(recipe.globalBatch) + " samples, got " +
                               detail::text(model.graph->batchNormGroup)});
  }
  // together_r5
  if (recipe.routingLocation && !model.experts) {
    diagnostics.push_back({*recipe.routingLocation, "routing", "together_r5",
                           "has no effect, as model " + model.name + " has no experts"});
  }
  // together_r8
  if (recipe.routing.biasUpdateSpeed > 0.0 && !(model.experts && model.experts->selectionBias)) {
    diagnostics.push_back({*recipe.routingLocation, "routing.bias_update_speed", "together_r8",
                           "has no effect, as model " + model.name + " has no selection_bias"});
  }
  // together_r6
  if (model.graph && recipe.lossChunks > 1) {
    diagnostics.push_back({recipe.lossChunksLocation, "loss_chunks", "together_r6",
                           "expected no more than 1, as model " + model.name +
                               " is a graph, whose logits may be those of images, got " +
                               detail::text(recipe.lossChunks)});
  }
  // together_r11, which the recipe alone does not tell: options may replace its sequence_length.
  if (!model.graph && recipe.sequenceLength % recipe.lossChunks != 0) {
    diagnostics.push_back({recipe.lossChunksLocation, "loss_chunks", "together_r11",
                           "expected a divisor of sequence_length " +
                               detail::text(recipe.sequenceLength) + ", got " +
                               detail::text(recipe.lossChunks)});
  }
  // together_r7
  if (model.graph && updatesMatrices(recipe.optimizer)) {
    std::string name = nameOf(recipe.optimizer);
    diagnostics.push_back({recipe.optimizerLocation, name, "together_r7",
                           "expected " + elementwiseOptimizers() + ", as model " + model.name +
                               " is a graph, whose matrices " + name + " does not know"});
  }
  checkDocuments(model, recipe, diagnostics);
  // together_r2
  if (!machine.device.peakFlops(recipe.precision)) {
    std::string precision = nameOf(recipe.precision);
    diagnostics.push_back({recipe.precisionLocation, "precision", "together_r2",
                           "expected a precision that machine " + machine.name +
                               " gives peak_flops for, got " + precision});
  }
  return diagnostics;
}

/// Returns the first dozen divisors of `size` up to `most`, in order: "1, 2, 4".
static std::string divisors(int64_t size, int64_t most) {
  constexpr size_t longest = 12;
  std::vector<std::string> found;
  for (int64_t i = 1; i <= std::min(size, most); ++i) {
    if (size % i != 0) {
      continue;
    }
    if (found.size() == longest) {
      found.push_back("...");
      break;
    }
    found.push_back(detail::text(i));
  }
  return detail::join(found);
}

bool canBePadded(std::string_view dimension) {
  // A norm divides by the size of hidden, attention scales by that of a head.
  return dimension != "hidden" && dimension != "head";
}

/// Checks legal_r1 for one sharding, and legal_r2 unless `isPadded`.
static void checkSharding(const PlanSpec &plan, const ShardingSpec &sharding,
                          const std::vector<std::pair<std::string, int64_t>> &dimensions,
                          const MachineSpec &machine, bool isPadded, Diagnostics &diagnostics) {
  auto error = [&](const char *rule, std::string message) {
    diagnostics.push_back({sharding.location, "", rule, std::move(message)});
  };
  std::vector<std::string> names;
  std::vector<int64_t> sizes;
  for (const auto &[name, length] : dimensions) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      names.push_back(name);
    }
    if (name == sharding.dimension) {
      sizes.push_back(length);
    }
  }
  if (sharding.axes.empty()) {
    return; // What is whole may as well not be there.
  }
  if (sizes.empty()) {
    error("legal_r1", "the model has no dimension " + detail::quote(sharding.dimension) +
                          ", only " + detail::join(names));
    return;
  }
  // parsePlan refuses unknown axes and products beyond a mesh, but code may build plans that have
  // them.
  int64_t ways = 1;
  for (const std::string &name : sharding.axes) {
    const AxisSpec *axis = plan.axis(name);
    if (!axis || axis->size < 1 || axis->size > (int64_t(1) << 40) / ways) {
      error("legal_r2",
            "axis " + detail::quote(name) + " is not an axis of the mesh, or too large");
      return;
    }
    ways *= axis->size;
  }
  auto divides = [&](int64_t length) { return length % ways == 0; };
  auto size = std::find_if_not(sizes.begin(), sizes.end(), divides);
  // Which of several lengths a value has, only apply-plan knows.
  bool mayDivide = sharding.value != "*" && std::any_of(sizes.begin(), sizes.end(), divides);
  if (size == sizes.end() || isPadded || mayDivide) {
    return;
  }
  std::string total = sharding.axes.size() > 1 ? " = " + detail::text(ways) : "";
  error("legal_r2", plan.parts().sized(sharding.axes, " * ") + total + " does not divide " +
                        sharding.dimension + "=" + detail::text(*size) + ", use one of " +
                        divisors(*size, machine.devices()));
}

Diagnostics validatePlan(const ModelSpec &model, const RecipeSpec &recipe,
                         const MachineSpec &machine, const PlanSpec &plan) {
  Diagnostics diagnostics;
  for (const std::vector<ShardingSpec> *entries : {&plan.shardings, &plan.homes}) {
    bool areHomes = entries == &plan.homes;
    for (const ShardingSpec &sharding : *entries) {
      if ((model.graph && sharding.dimension != "batch") || isOpDimension(sharding.dimension)) {
        continue; // Only the graph knows its dimensions, and ops what they do: apply-plan checks
                  // them.
      }
      checkSharding(plan, sharding, dimensionsOf(model, recipe), machine,
                    plan.mayPad && (areHomes || canBePadded(sharding.dimension)), diagnostics);
    }
  }
  // legal_r3
  if (plan.ranks() > machine.devices()) {
    const bool isPiped = plan.pipeline.stages > 1;
    diagnostics.push_back(
        {isPiped ? plan.pipeline.location : plan.mesh.front().location, "", "legal_r3",
         plan.ranksText() + (isPiped || plan.mesh.size() > 1 ? " need " : " needs ") +
             detail::text(plan.ranks()) + " devices, machine " + machine.name + " has " +
             detail::text(machine.devices())});
  }
  // legal_r14
  if (plan.mesh.size() > mostParts) {
    diagnostics.push_back({plan.mesh.front().location, "", "legal_r14",
                           "expected at most " + detail::text(int64_t(mostParts)) +
                               " axes, where the parts of a split axis count as such, got " +
                               detail::text(int64_t(plan.mesh.size()))});
  }
  return diagnostics;
}

} // namespace weft::desc
