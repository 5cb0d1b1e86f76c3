//===- Shrink.cpp - a model small enough to run here, split the same way --===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Verify/Shrink.h"

#include "ShrunkSizes.h"

#include <algorithm>
#include <array>
#include <sstream>

namespace weft::verify {
namespace {

using desc::AxisSpec;

/// Layers of one kind in the small model.
constexpr int64_t kLayersOfAKind = 2;

/// Rates at which the loss of the small model goes by a tenth in kSteps steps, and which no weight
/// is thrown far by.
constexpr double kAdamWRate = 0.05, kSgdRate = 0.2;

/// Weights of small layers have to be larger, that what each layer adds is no rounding.
constexpr double kStandardDeviation = 0.08;

/// Below this, an element whose gradient is all rounding would move as far as others.
constexpr double kLeastEpsilon = 1e-8;

template <typename T> std::string text(T value) {
  std::ostringstream stream;
  stream << value;
  return stream.str();
}

class Shrinker {
public:
  Shrinker(const desc::ModelSpec &model, const desc::RecipeSpec &recipe, const desc::PlanSpec &plan)
      : model(model), recipe(recipe), small(withSmallMesh({model, recipe, plan, {}, {}, {}})),
        sizes(plan.mesh, small.plan.mesh) {}

  Shrunk run() {
    shrinkRecipe();
    if (model.graph) {
      small.notKept.push_back("sizes of a graph stand in its file: only its batch is smaller");
      chooseSizes();
    } else {
      chooseLayers();
      addModelSizes();
      chooseSizes();
      shrinkRest();
    }
    return std::move(small);
  }

private:
  template <typename T> void set(const std::string &what, T &field, T value) {
    if (field != value) {
      small.changes.push_back({what, text(field), text(value)});
      field = value;
    }
  }

  /// A dimension to make smaller; one element is left as it is.
  void addSize(const std::string &what, int64_t &field, int64_t least, int64_t multipleOf = 1,
               bool halves = false) {
    if (field > 1) {
      dimensions.push_back({what, &field, field, least, multipleOf, halves});
    }
  }

  struct Dimension {
    std::string what;
    int64_t *field;
    int64_t size, least, multipleOf;
    bool halves;
  };

  static Shrunk withSmallMesh(Shrunk small);
  void chooseLayers();
  void chooseSizes();
  void addModelSizes();
  void shrinkRest();
  void shrinkExperts(desc::ExpertsSpec &experts);
  void shrinkBuffers();
  void shrinkRecipe();
  void shrinkOptimizer();

  const desc::ModelSpec &model;
  const desc::RecipeSpec &recipe;
  Shrunk small;
  ShrunkSizes sizes;
  /// In the order of the descriptions.
  std::vector<Dimension> dimensions;
  int64_t group = 1;
};

/// The largest divisor of `size` below it; 2 for a prime.
int64_t smallerAxis(int64_t size) {
  for (int64_t divisor = 2; divisor * divisor <= size; ++divisor) {
    if (size % divisor == 0) {
      return size / divisor;
    }
  }
  return 2;
}

Shrunk Shrinker::withSmallMesh(Shrunk small) {
  std::vector<AxisSpec> &mesh = small.plan.mesh;
  const std::vector<AxisSpec> before = mesh;
  while (small.plan.ranks() > kMostRanks) {
    auto longest =
        std::max_element(mesh.begin(), mesh.end(),
                         [](const AxisSpec &a, const AxisSpec &b) { return a.size < b.size; });
    if (longest->size == 2) {
      small.notKept.push_back("at most " + text(kMostRanks) + " ranks: no axis gets less than 2");
      break;
    }
    longest->size = smallerAxis(longest->size);
  }
  for (size_t i = 0; i < mesh.size(); ++i) {
    if (mesh[i].size != before[i].size) {
      small.changes.push_back({"axis " + mesh[i].name, text(before[i].size), text(mesh[i].size)});
    }
  }
  return small;
}

/// Two layers of each kind, as far as there are so many, those of plain MLPs as they stand between
/// the others: before all of them, or before each.
void Shrinker::chooseLayers() {
  std::array<std::vector<int64_t>, 2> ofKind;
  for (int64_t layer = 0; layer < model.layers; ++layer) {
    ofKind[model.hasExperts(layer)].push_back(layer);
  }
  for (std::vector<int64_t> &layers : ofKind) {
    layers.resize(std::min<size_t>(layers.size(), kLayersOfAKind));
    small.layers.insert(small.layers.end(), layers.begin(), layers.end());
  }
  if (model.experts) {
    desc::ExpertsSpec &experts = *small.model.experts;
    // The plain layers first, then the others: the order has no part in how a layer is split.
    set("experts.first_layer", experts.firstLayer, int64_t(ofKind[false].size()));
    set("experts.layer_period", experts.layerPeriod, int64_t(1));
  }
  set("layers", small.model.layers, int64_t(small.layers.size()));
}

/// Those that have little room before those that have much, which can evade them.
void Shrinker::chooseSizes() {
  std::vector<Dimension *> bySize;
  for (Dimension &dimension : dimensions) {
    bySize.push_back(&dimension);
  }
  std::sort(bySize.begin(), bySize.end(), [](const Dimension *a, const Dimension *b) {
    return std::pair(a->size, a) < std::pair(b->size, b);
  });
  for (Dimension *dimension : bySize) {
    *dimension->field =
        sizes.choose(dimension->size, dimension->least, dimension->multipleOf, dimension->halves);
  }
  for (const Dimension &dimension : dimensions) {
    std::string before = text(dimension.size), after = text(*dimension.field);
    if (before != after) {
      small.changes.push_back({dimension.what, before, after});
    }
    if (!sizes.dividesAlike(dimension.size, *dimension.field)) {
      small.notKept.push_back(dimension.what + " " + before +
                              " is not divided by products of axes that divide " + after);
    }
  }
}

void Shrinker::addModelSizes() {
  desc::ModelSpec &to = small.model;
  // Zigzag order has two chunks on each rank.
  addSize("sequence_length", small.recipe.sequenceLength, 6, 1, /*halves=*/true);
  addSize("hidden", to.hidden, 8);
  addSize("kv_heads", to.kvHeads, 2);
  group = model.group();
  addSize("heads of a kv_head", group, 2);
  // Rotations take pairs of elements.
  addSize("head_size", to.headSize, 4, model.positions == desc::PositionKind::Rotary ? 2 : 1);
  addSize("ffn", to.ffn, 6);
  addSize("vocabulary", to.vocabulary, 24);
  if (to.experts) {
    shrinkExperts(*to.experts);
  }
}

/// What follows from the sizes.
void Shrinker::shrinkRest() {
  desc::ModelSpec &to = small.model;
  int64_t sequence = small.recipe.sequenceLength;
  to.heads = to.kvHeads * group;
  if (model.maximumLength > recipe.sequenceLength) {
    dimensions.clear();
    addSize("maximum_length", to.maximumLength, sequence + 1);
    chooseSizes();
  } else if (model.maximumLength > 0) {
    set("maximum_length", to.maximumLength, sequence);
  }
  if (model.attentionWindow >= recipe.sequenceLength) {
    set("attention_window", to.attentionWindow, sequence);
  } else if (model.attentionWindow > 0) {
    set("attention_window", to.attentionWindow,
        std::clamp<int64_t>(sequence * 2 / 3, 1, model.attentionWindow));
  }
  shrinkBuffers();
  set("initialization.standard_deviation", to.initialization.standardDeviation, kStandardDeviation);
}

void Shrinker::shrinkExperts(desc::ExpertsSpec &experts) {
  set("experts.groups", experts.groups, std::min<int64_t>(experts.groups, 4));
  bool keepsAll = experts.keptGroups >= model.experts->groups;
  set("experts.kept_groups", experts.keptGroups,
      keepsAll ? experts.groups : std::min(experts.keptGroups, experts.groups - 1));
  set("experts.experts_per_token", experts.perToken, std::min<int64_t>(experts.perToken, 2));
  addSize("experts", experts.count, std::max<int64_t>(4, 2 * experts.groups), experts.groups);
  addSize("experts.ffn", experts.ffn, 4);
  addSize("experts.shared_ffn", experts.sharedFfn, 4);
}

/// Few tokens are spread less evenly than many: a small sequence has room in every buffer.
void Shrinker::shrinkBuffers() {
  std::optional<double> &factor = small.recipe.routing.bufferFactor;
  if (factor) {
    const desc::ExpertsSpec &experts = *small.model.experts;
    set("routing.buffer_factor", *factor, double(experts.count) / double(experts.perToken));
  }
}

void Shrinker::shrinkRecipe() {
  desc::RecipeSpec &to = small.recipe;
  int64_t least = 2;
  if (model.graph && model.graph->batchNormGroup > 0) {
    least = std::max(least, model.graph->batchNormGroup);
  }
  addSize("batch", to.globalBatch, least,
          model.graph ? std::max<int64_t>(model.graph->batchNormGroup, 1) : 1);
  if (recipe.precision != desc::Precision::F64) {
    small.changes.push_back({"precision", desc::nameOf(recipe.precision), "F64"});
    to.precision = desc::Precision::F64;
  }
  if (recipe.precision == desc::Precision::BF16) {
    small.notKept.push_back(
        "rounding to bf16, of activations and between ranks: all is compared in float64");
    to.reduction = desc::Precision::F32;
  }
  set("steps", to.steps, kSteps);
  desc::ScheduleSpec &schedule = to.schedule;
  set("schedule.warmup_steps", schedule.warmupSteps, std::min<int64_t>(schedule.warmupSteps, 1));
  shrinkOptimizer();
}

void Shrinker::shrinkOptimizer() {
  desc::RecipeSpec &to = small.recipe;
  auto *adamw = std::get_if<desc::AdamWSpec>(&to.optimizer);
  set("schedule.peak_learning_rate", to.schedule.peakLearningRate, adamw ? kAdamWRate : kSgdRate);
  if (adamw) {
    set("adamw.epsilon", adamw->epsilon, std::max(adamw->epsilon, kLeastEpsilon));
  }
}

} // namespace

Shrunk shrink(const desc::ModelSpec &model, const desc::RecipeSpec &recipe,
              const desc::PlanSpec &plan) {
  return Shrinker(model, recipe, plan).run();
}

} // namespace weft::verify
