//===- Shrink.cpp - makes a model small enough to run here ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Verify/Shrink.h"

#include "ShrunkLayers.h"
#include "ShrunkSizes.h"

#include "weft/Description/ExpertSlots.h"

#include <algorithm>
#include <array>
#include <sstream>

namespace weft::verify {
namespace {

using desc::AxisSpec;

/// Most ranks of the small model.
constexpr int64_t kMostRanks = 16, kMostRanksOfDivisors = 64;

/// Numbers of key heads to try: the least first, and more, up to the most, if there is no room for
/// the sides of matrices.
constexpr int64_t kLeastHeads = 2, kMostHeads = 8;

/// The most by which all sides of matrices are divided if sides cannot be chosen one by one.
constexpr int64_t kMostDivisor = 256;

/// Micro-batches in the small model: of four, as of more, the middle ones run one body.
constexpr int64_t kMicroBatches = 4;

/// Micro-batches of a pipeline, more than its stages: so many that the first stage, which keeps one
/// for each stage, uses storage again.
constexpr int64_t kMicroBatchesBeyondStages = 2;

/// Parts of a sequence whose logits are computed one after the other, in the small model.
constexpr int64_t kParts = 2;

/// Learning rates that change the loss of the small model in kSteps steps, but no weight by much.
constexpr double kNormalizedRate = 0.05, kOtherRate = 0.2;

/// Weights of small layers are larger, so that each layer's contribution is more than rounding.
constexpr double kStandardDeviation = 0.08;

/// With a smaller epsilon, an element whose gradient is only rounding errors would change as much
/// as others.
constexpr double kLeastEpsilon = 1e-8;

template <typename T> std::string text(T value) {
  std::ostringstream stream;
  stream << value;
  return stream.str();
}

/// Returns "9, 8, 8, 7".
std::string listed(const std::vector<int64_t> &numbers) {
  std::string list;
  for (int64_t number : numbers) {
    list += (list.empty() ? "" : ", ") + text(number);
  }
  return list;
}

class Shrinker {
public:
  /// Keeps at least `leastHeads` heads of keys, if the model has that many.
  Shrinker(const desc::ModelSpec &model, const desc::RecipeSpec &recipe, const desc::PlanSpec &plan,
           AxisSizes axes, int64_t leastHeads)
      : model(model), recipe(recipe), plan(plan),
        small(withSmallMesh({model, recipe, plan, {}, {}, {}}, axes)), sizes(plan, small.plan),
        leastHeads(leastHeads) {}

  /// Divides all sides of matrices by `divisor`, and keeps the numbers of heads and experts.
  void divideSides(int64_t divisor) { sideDivisor = divisor; }

  /// Returns the number of pairs of sides of matrices of which the shorter has become the longer; 0
  /// if sides do not matter.
  int64_t sidesTurned() const { return turned; }

  Shrunk run() {
    shrinkRecipe();
    if (model.graph) {
      small.notKept.push_back("sizes of a graph, which its file fixes: only its batch is smaller");
      chooseSizes();
    } else {
      shrinkLayers();
      addModelSizes();
      chooseSizes();
      shrinkRest();
    }
    small.recipe.globalBatch = microBatch * small.plan.accumulation;
    if (model.experts) {
      shrinkBuffers();
    }
    small.plan = desc::renameParts(std::move(small.plan));
    return std::move(small);
  }

private:
  template <typename T> void set(const std::string &what, T &field, T value) {
    note(what, field, value);
    field = value;
  }
  template <typename T> void note(const std::string &what, T before, T now) {
    if (before != now) {
      small.changes.push_back({what, text(before), text(now)});
    }
  }

  /// Adds a dimension to make smaller, whose size is `field`; a size of 1 does not change.
  void addSize(const std::string &what, int64_t &field, LargeDimension dimension) {
    dimension.size = field;
    if (field > 1) {
      dimensions.push_back({what, &field, std::move(dimension), false});
    }
  }
  /// Adds a number of heads or experts.
  void addCount(const std::string &what, int64_t &field, LargeDimension dimension) {
    if (!sideDivisor) {
      addSize(what, field, std::move(dimension));
    }
  }
  /// Adds a dimension that is a side of matrices, perhaps with others.
  void addSide(const std::string &what, int64_t &field, LargeDimension dimension) {
    if (sideDivisor && field > 1) {
      dimension.size = field;
      divideSide(what, field, dimension);
    } else {
      addSize(what, field, std::move(dimension));
    }
  }
  /// Adds a dimension that is a side of matrices by itself.
  void addWidth(const std::string &what, int64_t &field, LargeDimension dimension) {
    addSide(what, field, std::move(dimension));
    if (!sideDivisor && field > 1) {
      dimensions.back().isWidth = true;
    }
  }

  struct Choice {
    std::string what;
    int64_t *field;
    LargeDimension dimension;
    bool isWidth;
  };

  static Shrunk withSmallMesh(Shrunk small, AxisSizes axes);
  /// Records the change to a chosen size, and the properties that it does not keep.
  void tell(const std::string &what, const LargeDimension &dimension, int64_t chosen);
  void shrinkLayers();
  int64_t choose(LargeDimension &dimension);
  void divideSide(const std::string &what, int64_t &field, const LargeDimension &dimension);
  void chooseSizes();
  /// Chunks of the loss of one token stay that: a longer one mixes its tokens with the batch.
  bool hasChunkOfEachToken() const { return recipe.lossChunks == recipe.sequenceLength; }
  /// The size of a side of matrices, in the large and in the small model.
  using Side = std::pair<int64_t, int64_t>;
  std::vector<Side> sidesOfHeads() const;
  void chooseWidths(const std::vector<Choice *> &bySize);
  void addModelSizes();
  void addHeadSizes();
  void shrinkRest();
  void shrinkLengths();
  void shrinkExperts(desc::ExpertsSpec &experts);
  void shrinkBuffers();
  void shrinkRecipe();
  void shrinkOptimizer();

  const desc::ModelSpec &model;
  const desc::RecipeSpec &recipe;
  const desc::PlanSpec &plan;
  Shrunk small;
  ShrunkSizes sizes;
  /// In the order of the descriptions.
  std::vector<Choice> dimensions;
  int64_t leastHeads, turned = 0;
  std::optional<int64_t> sideDivisor;
  int64_t group = 1, microBatch = 1;
  /// Number of elements of a head that are not rotated.
  int64_t plain = 0;
};

/// Returns the largest proper divisor of `size`; 1 for a prime.
int64_t largestDivisor(int64_t size) {
  for (int64_t divisor = 2; divisor * divisor <= size; ++divisor) {
    if (size % divisor == 0) {
      return size / divisor;
    }
  }
  return 1;
}

Shrunk Shrinker::withSmallMesh(Shrunk small, AxisSizes axes) {
  std::vector<AxisSpec> &mesh = small.plan.mesh;
  const std::vector<AxisSpec> before = mesh;
  const int64_t most = axes == AxisSizes::Least ? kMostRanks : kMostRanksOfDivisors;
  auto smaller = [&](const AxisSpec &axis) {
    int64_t least = axes == AxisSizes::Least ? std::min<int64_t>(axis.size, 2) : axis.size;
    int64_t divisor = largestDivisor(axis.size);
    return divisor > 1 ? divisor : least;
  };
  while (small.plan.ranks() > most) {
    auto longest =
        std::max_element(mesh.begin(), mesh.end(), [&](const AxisSpec &a, const AxisSpec &b) {
          return std::pair(smaller(a) < a.size, a.size) < std::pair(smaller(b) < b.size, b.size);
        });
    if (longest == mesh.end() || smaller(*longest) == longest->size) {
      small.notKept.push_back("at most " + text(most) + " ranks: " +
                              (mesh.empty() ? "no stage is left out"
                                            : "no axis gets less than " + text(longest->size)));
      break;
    }
    longest->size = smaller(*longest);
  }
  for (size_t i = 0; i < mesh.size(); ++i) {
    if (mesh[i].size != before[i].size) {
      small.changes.push_back({"axis " + mesh[i].name, text(before[i].size), text(mesh[i].size)});
    }
  }
  return small;
}

void Shrinker::shrinkLayers() {
  chooseLayers(model, plan, small);
  if (model.experts) {
    note("experts.first_layer", model.experts->firstLayer, small.model.experts->firstLayer);
    note("experts.layer_period", model.experts->layerPeriod, small.model.experts->layerPeriod);
  }
  note("layers", model.layers, small.model.layers);
  note("layers of stages", listed(countChunkLayers(plan.pipeline, model.layers)),
       listed(countChunkLayers(small.plan.pipeline, small.model.layers)));
}

/// Chooses a size, with as many parts as in the large model if with fewer there is no size that
/// divides as the large one does.
int64_t Shrinker::choose(LargeDimension &dimension) {
  int64_t chosen = sizes.choose(dimension);
  if (dimension.smallParts < dimension.largeParts &&
      (chosen % dimension.smallParts != 0 || !sizes.difference(dimension, chosen).empty())) {
    LargeDimension other = dimension;
    other.smallParts = dimension.largeParts;
    int64_t size = sizes.choose(other);
    if (size % dimension.multipleOf == 0 || chosen % dimension.smallParts != 0) {
      dimension = other;
      chosen = size;
    }
  }
  return chosen;
}

/// Chooses sizes with little room first, because those with much room can avoid them.
void Shrinker::chooseSizes() {
  std::vector<Choice *> bySize;
  bySize.reserve(dimensions.size());
  for (Choice &choice : dimensions) {
    bySize.push_back(&choice);
  }
  std::sort(bySize.begin(), bySize.end(), [](const Choice *a, const Choice *b) {
    return std::pair(a->dimension.size, a) < std::pair(b->dimension.size, b);
  });
  bool comparesWidths = desc::updatesMatrices(recipe.optimizer);
  for (Choice *choice : bySize) {
    if (!comparesWidths || !choice->isWidth) {
      *choice->field = choose(choice->dimension);
    }
  }
  if (comparesWidths) {
    std::erase_if(bySize, [](const Choice *choice) { return !choice->isWidth; });
    chooseWidths(bySize);
  }
  for (const Choice &choice : dimensions) {
    tell(choice.what, choice.dimension, *choice.field);
    if (choice.dimension.name == "sequence") {
      set("loss_chunks", small.recipe.lossChunks,
          hasChunkOfEachToken() ? *choice.field : choice.dimension.smallParts);
    }
  }
  dimensions.clear();
}

std::vector<Shrinker::Side> Shrinker::sidesOfHeads() const {
  int64_t kvHeads = small.model.kvHeads, heads = kvHeads * group;
  if (const auto &latent = small.model.latent) {
    int64_t rotary = model.latent->rotarySize;
    return {{rotary, latent->rotarySize},
            {model.heads * (model.headSize - rotary), heads * plain},
            {model.heads * model.headSize, heads * (plain + latent->rotarySize)},
            {model.heads * model.latent->valueSize, heads * latent->valueSize}};
  }
  return {{model.kvHeads * model.headSize, kvHeads * small.model.headSize},
          {model.heads * model.headSize, heads * small.model.headSize}};
}

/// Chooses widths. An optimizer multiplies a matrix from its shorter side, so of two sides the same
/// one stays the shorter, or both stay equal. The sides that are not widths are chosen already.
void Shrinker::chooseWidths(const std::vector<Choice *> &bySize) {
  std::vector<Side> sides = sidesOfHeads();
  if (model.experts) { // Of the router.
    sides.emplace_back(model.experts->count, small.model.experts->count);
  }
  for (Choice *choice : bySize) {
    LargeDimension dimension = choice->dimension;
    for (auto [before, after] : sides) {
      if (before <= dimension.size) {
        dimension.least = std::max(dimension.least, after + (before < dimension.size));
      }
      if (before >= dimension.size) {
        dimension.most = std::min(dimension.most, after - (before > dimension.size));
      }
    }
    *choice->field = sizes.choose(dimension);
    for (Side side : sides) {
      turned += (side.first <=> dimension.size) != (side.second <=> *choice->field);
    }
    sides.emplace_back(dimension.size, *choice->field);
  }
}

/// Divides a side like all others, so that those equal to it or to its multiples stay so. Counts a
/// side that cannot be divided, or that becomes shorter than the experts are many, as turned.
void Shrinker::divideSide(const std::string &what, int64_t &field,
                          const LargeDimension &dimension) {
  int64_t chosen = field / *sideDivisor, experts = model.experts ? model.experts->count : 0;
  bool divides = field % *sideDivisor == 0 && chosen % dimension.multipleOf == 0 && chosen > 1 &&
                 sizes.difference(dimension, chosen).empty();
  turned += !divides || (field <=> experts) != (chosen <=> experts);
  field = chosen;
  tell(what, dimension, chosen);
}

void Shrinker::tell(const std::string &what, const LargeDimension &dimension, int64_t chosen) {
  if (chosen != dimension.size) {
    small.changes.push_back({what, text(dimension.size), text(chosen)});
  }
  std::string difference = sizes.difference(dimension, chosen);
  if (!difference.empty()) {
    small.notKept.push_back(what + " " + difference);
  }
}

void Shrinker::addModelSizes() {
  desc::ModelSpec &to = small.model;
  // An expert's buffer has room for a sequence, and is cut as it was.
  int64_t unit =
      recipe.routing.bufferFactor ? sizes.unitOf(desc::slotsOf(*model.experts, recipe)) : 1;
  int64_t chunks = hasChunkOfEachToken() ? 1 : recipe.lossChunks;
  // Zigzag order has two chunks on each rank.
  addSize("sequence_length", small.recipe.sequenceLength,
          {.name = "sequence",
           .least = 6,
           .multipleOf = unit,
           .halves = true,
           .largeParts = chunks,
           .smallParts = std::min(chunks, kParts)});
  addWidth("hidden", to.hidden, {.name = "hidden", .least = 8});
  addCount("kv_heads", to.kvHeads, {.name = "kv_heads", .least = leastHeads});
  group = model.group();
  addCount("heads of a kv_head", group, {.name = "group", .least = 2});
  addHeadSizes();
  addWidth("ffn", to.ffn, {.name = "ffn", .least = 6});
  addSize("vocabulary", to.vocabulary, {.name = "vocab", .least = 24});
  if (to.experts) {
    shrinkExperts(*to.experts);
  }
}

/// Rotations need pairs of elements: of a head, or with latent attention of a part of it.
void Shrinker::addHeadSizes() {
  if (!model.latent) {
    int64_t pair = model.positions == desc::PositionKind::Rotary ? 2 : 1;
    addSide("head_size", small.model.headSize, {.name = "head", .least = 4, .multipleOf = pair});
    return;
  }
  desc::LatentSpec &latent = *small.model.latent;
  plain = model.headSize - latent.rotarySize;
  addSide("elements of a head that are not rotated", plain, {.name = "plain", .least = 3});
  addSide("latent_attention.rotary_size", latent.rotarySize,
          {.name = "rotary", .least = 2, .multipleOf = 2});
  addSide("latent_attention.value_size", latent.valueSize, {.name = "value", .least = 3});
  addWidth("latent_attention.key_value_rank", latent.keyValueRank, {.name = "latent", .least = 4});
  addWidth("latent_attention.query_rank", latent.queryRank, {.name = "query_latent", .least = 4});
}

/// Sets the fields that follow from the sizes.
void Shrinker::shrinkRest() {
  desc::ModelSpec &to = small.model;
  to.heads = to.kvHeads * group;
  if (to.latent) {
    to.headSize = plain + to.latent->rotarySize;
    tell("head_size", {.name = "head", .size = model.headSize}, to.headSize);
  }
  shrinkLengths();
  set("initialization.standard_deviation", to.initialization.standardDeviation, kStandardDeviation);
}

/// Sets the fields that count tokens.
void Shrinker::shrinkLengths() {
  desc::ModelSpec &to = small.model;
  int64_t sequence = small.recipe.sequenceLength;
  if (model.maximumLength > recipe.sequenceLength) {
    addSize("maximum_length", to.maximumLength, {.name = "positions", .least = sequence + 1});
    chooseSizes();
  } else if (model.maximumLength > 0) {
    to.maximumLength = sequence;
    tell("maximum_length", {.name = "positions", .size = model.maximumLength}, sequence);
  }
  if (model.attentionWindow >= recipe.sequenceLength) {
    set("attention_window", to.attentionWindow, sequence);
  } else if (model.attentionWindow > 0) {
    // A window of 1 has no gradients of queries and keys, but rounding errors that Muon would
    // scale.
    set("attention_window", to.attentionWindow,
        std::clamp<int64_t>(sequence * 2 / 3, 1, std::max<int64_t>(model.attentionWindow, 2)));
  }
  if (std::optional<int64_t> &end = small.recipe.documentEnd) {
    // The made-up data has many small numbers, so documents end within a small sequence.
    set("documents.end", *end, std::min<int64_t>(*end, 1));
  }
}

/// Returns at most four groups of experts, or all if their number does not divide by fewer.
int64_t fewGroups(const desc::ExpertsSpec &experts) {
  for (int64_t groups = std::min<int64_t>(experts.groups, 4); groups > 1; --groups) {
    if (experts.count % groups == 0) {
      return groups;
    }
  }
  return experts.groups;
}

void Shrinker::shrinkExperts(desc::ExpertsSpec &experts) {
  if (!sideDivisor) {
    set("experts.groups", experts.groups, fewGroups(experts));
    bool keepsAll = experts.keptGroups >= model.experts->groups;
    set("experts.kept_groups", experts.keptGroups,
        keepsAll ? experts.groups : std::min(experts.keptGroups, experts.groups - 1));
  }
  set("experts.experts_per_token", experts.perToken, std::min<int64_t>(experts.perToken, 2));
  addCount("experts", experts.count,
           {.name = "experts",
            .least = std::max<int64_t>(4, 2 * experts.groups),
            .multipleOf = experts.groups});
  addWidth("experts.ffn", experts.ffn, {.name = "ffn", .least = 4});
  addWidth("experts.shared_ffn", experts.sharedFfn, {.name = "ffn", .least = 4});
}

/// Gives every expert as many slots as the same axes divide. A buffer gets room for the whole
/// sequence, because few tokens are spread less evenly than many.
void Shrinker::shrinkBuffers() {
  const desc::ExpertsSpec &experts = *small.model.experts;
  desc::RoutingSpec &routing = small.recipe.routing;
  int64_t length = small.recipe.sequenceLength;
  if (routing.bufferFactor) {
    set("routing.buffer_factor", *routing.bufferFactor,
        double(experts.count) / double(experts.perToken));
  }
  if (routing.capacityFactor) {
    LargeDimension slots{.name = "slots", .size = desc::slotsOf(*model.experts, recipe)};
    int64_t wanted = desc::slotsOf(experts, small.recipe);
    int64_t chosen = sizes.nearest(slots, wanted, length);
    if (chosen != wanted) {
      // Between two numbers of slots, as factors are rounded up.
      double even = desc::evenShare(experts, desc::capacityGroupOf(small.recipe));
      set("routing.capacity_factor", *routing.capacityFactor, (double(chosen) - 0.5) / even);
    }
  }
}

void Shrinker::shrinkRecipe() {
  desc::RecipeSpec &to = small.recipe;
  int64_t together = model.graph ? std::max<int64_t>(model.graph->batchNormGroup, 1) : 1;
  int64_t &parts = small.plan.accumulation;
  microBatch = recipe.globalBatch / parts;
  addSize(parts > 1 ? "micro-batch" : "batch", microBatch,
          {.name = "batch", .least = std::max<int64_t>(2, together), .multipleOf = together});
  const int64_t stages = plan.pipeline.stages;
  set("accumulation", parts,
      std::min(parts,
               std::max(kMicroBatches, stages > 1 ? stages + kMicroBatchesBeyondStages : 0)));
  // What is left is an order, too, as micro-batches do not need each other.
  const desc::StageSchedule order = desc::firstOf(small.plan.pipeline.order, parts);
  small.plan.pipeline.order = desc::withoutGathers(order);
  if (small.plan.pipeline.gather != desc::GatherPeriod::Step ||
      small.plan.pipeline.order != order) {
    small.plan.pipeline.gather = desc::GatherPeriod::Step;
    small.notKept.push_back(
        "gathers at places of the schedule: in float64 parameters have no copies to gather");
  }
  if (recipe.precision != desc::Precision::F64) {
    small.changes.push_back({"precision", desc::nameOf(recipe.precision), "F64"});
    to.precision = desc::Precision::F64;
  }
  if (recipe.precision == desc::Precision::TF32) {
    small.notKept.push_back("rounding to tf32 in matmuls: all is compared in float64");
  }
  if (recipe.precision == desc::Precision::F16) {
    small.notKept.push_back("rounding to f16: all is compared in float64");
  }
  if (recipe.precision == desc::Precision::BF16) {
    small.notKept.push_back(
        "rounding to bf16, of activations and between ranks: all is compared in float64");
    to.reduction = desc::Precision::F32;
    to.gradientAccumulation = desc::Precision::F32;
  }
  set("steps", to.steps, kSteps);
  desc::ScheduleSpec &schedule = to.schedule;
  set("schedule.warmup_steps", schedule.warmupSteps, std::min<int64_t>(schedule.warmupSteps, 1));
  shrinkOptimizer();
}

void Shrinker::shrinkOptimizer() {
  desc::RecipeSpec &to = small.recipe;
  set("schedule.peak_learning_rate", to.schedule.peakLearningRate,
      desc::normalizesUpdates(to.optimizer) ? kNormalizedRate : kOtherRate);
  if (double *epsilon = desc::epsilonOf(to.optimizer)) {
    set(desc::nameOf(to.optimizer) + ".epsilon", *epsilon, std::max(*epsilon, kLeastEpsilon));
  }
}

} // namespace

Shrunk shrink(const desc::ModelSpec &model, const desc::RecipeSpec &recipe,
              const desc::PlanSpec &plan, AxisSizes axes) {
  // Hidden is often as large as all heads: more heads leave other sides room below it.
  int64_t most = std::clamp<int64_t>(model.kvHeads, kLeastHeads, kMostHeads);
  for (int64_t heads = kLeastHeads; heads <= most; ++heads) {
    Shrinker shrinker(model, recipe, plan, axes, heads);
    Shrunk shrunk = shrinker.run();
    if (shrinker.sidesTurned() == 0) {
      return shrunk;
    }
  }
  // Otherwise all sides stay as long as they are to each other.
  for (int64_t divisor = kMostDivisor; divisor > 1; --divisor) {
    Shrinker shrinker(model, recipe, plan, axes, kLeastHeads);
    shrinker.divideSides(divisor);
    Shrunk shrunk = shrinker.run();
    if (shrinker.sidesTurned() == 0) {
      return shrunk;
    }
  }
  Shrinker shrinker(model, recipe, plan, axes, kLeastHeads);
  shrinker.divideSides(1);
  return shrinker.run();
}

} // namespace weft::verify
