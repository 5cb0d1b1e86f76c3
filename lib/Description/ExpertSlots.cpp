//===- ExpertSlots.cpp - how many tokens an expert has room for -----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Description/ExpertSlots.h"

#include <algorithm>
#include <cmath>

namespace weft::desc {

double evenShare(const ExpertsSpec &experts, int64_t tokens) {
  return static_cast<double>(tokens * experts.perToken) / static_cast<double>(experts.count);
}

/// Rounds up, except products that are integers but for rounding errors.
static int64_t multipleOf(double factor, double even) {
  return std::max<int64_t>(1, static_cast<int64_t>(std::ceil(factor * even - 1e-9)));
}

int64_t capacityGroupOf(const RecipeSpec &recipe) {
  bool isGlobal = recipe.routing.capacityGroup == RoutingGroup::GlobalBatch;
  return isGlobal ? recipe.globalBatchTokens() : recipe.sequenceLength;
}

int64_t capacityOf(const ExpertsSpec &experts, const RecipeSpec &recipe) {
  return multipleOf(*recipe.routing.capacityFactor, evenShare(experts, capacityGroupOf(recipe)));
}

int64_t bufferOf(const ExpertsSpec &experts, const RecipeSpec &recipe) {
  int64_t length = recipe.sequenceLength;
  std::optional<double> factor = recipe.routing.bufferFactor;
  return factor ? std::min(multipleOf(*factor, evenShare(experts, length)), length) : length;
}

int64_t slotsOf(const ExpertsSpec &experts, const RecipeSpec &recipe) {
  return recipe.routing.capacityFactor
             ? std::min(capacityOf(experts, recipe), recipe.sequenceLength)
             : bufferOf(experts, recipe);
}

} // namespace weft::desc
