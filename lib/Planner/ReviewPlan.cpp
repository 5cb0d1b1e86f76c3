//===- ReviewPlan.cpp - errors and warnings of a plan ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Planner/ReviewPlan.h"

#include "weft/Cost/Predictor.h"
#include "weft/Description/Validate.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <numeric>
#include <set>

namespace weft::planner {

using namespace desc;

namespace {

std::string text(int64_t number) { return std::to_string(number); }

/// Returns a number with three digits, and its unit.
std::string text(double number, const char *unit) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.3g %s", number, unit);
  return buffer;
}

/// "1, 2 or 4".
std::string choice(const std::vector<std::string> &words) {
  std::string all;
  for (size_t i = 0; i < words.size(); ++i) {
    all += (i == 0 ? "" : i + 1 < words.size() ? ", " : " or ") + words[i];
  }
  return all;
}

class Review {
public:
  Review(const ModelSpec &model, const RecipeSpec &recipe, const MachineSpec &machine,
         const PlanSpec &plan, const PlanRequest &request)
      : model(model), recipe(recipe), machine(machine), plan(plan), request(request) {}

  PlanReview run() {
    result.errors = validateTogether(model, recipe, machine);
    for (Diagnostic &diagnostic : validatePlan(model, recipe, machine, plan)) {
      error(diagnostic.location, diagnostic.rule, diagnostic.message);
    }
    checkRanks();
    checkShards();
    checkBatch();
    checkAccumulation();
    checkLayers();
    checkPipeline();
    checkMemory();
    warnOfNodes();
    warnOfStageAxis();
    warnOfIdleDevices();
    warnOfPeaks();
    return std::move(result);
  }

private:
  Location meshLocation() const {
    return !plan.mesh.empty()         ? plan.mesh.front().location
           : plan.pipeline.stages > 1 ? plan.pipeline.location
                                      : Location{"plan", 0, 0};
  }
  /// Returns the axes that cut the model's inputs by samples.
  std::vector<std::string> batchAxes() const;
  /// "dp=2 * tp=4".
  std::string product(const std::vector<std::string> &axes) const;
  std::vector<std::string> allAxes() const;
  /// Returns the number of ranks of all stages, as `shards` does.
  std::optional<int64_t> allRanks() const;
  /// Returns the number of shards that `axes` cut; nothing if one is no axis of the mesh, or the
  /// number is absurdly large.
  std::optional<int64_t> shards(const std::vector<std::string> &axes) const;
  /// An error in the plan's file also has the field; a pin is identified by itself.
  static Diagnostic diagnostic(const Location &location, const std::string &rule,
                               std::string message) {
    static const std::set<std::string_view> ofMesh = {
        "legal_r3", "legal_r4", "legal_r6", "legal_r7", "legal_r12", "legal_r13", "legal_r14"};
    const char *field = rule == "legal_r1"    ? "dimension"
                        : rule == "legal_r10" ? "accumulation"
                        : ofMesh.count(rule)  ? "mesh"
                                              : "axes";
    return {location, location.line > 0 ? field : "", rule, std::move(message)};
  }
  void error(const Location &location, const std::string &rule, std::string message) {
    result.errors.push_back(diagnostic(location, rule, std::move(message)));
  }

  void checkRanks();
  void checkShards();
  void checkBatch();
  void checkAccumulation();
  void checkOtherBatches(int64_t samples);
  void checkWholeBatch(int64_t samples);
  void checkLayers(const LayerRange &layers, const Location &location);
  void checkLayers();
  void checkPipeline();
  void checkMemory();
  void warnOfNodes();
  void warnOfStageAxis();
  void warnOfIdleDevices();
  void warnOfPeaks();
  /// Returns the seconds of one all-reduce of a layer's activations over `axes`.
  double sumSeconds(const cost::Predictor &predictor, cost::Group group) const;

  const ModelSpec &model;
  const RecipeSpec &recipe;
  const MachineSpec &machine;
  const PlanSpec &plan;
  const PlanRequest &request;
  PlanReview result;
};

std::vector<std::string> Review::batchAxes() const {
  return axesFor(plan.shardings, "tokens", "batch").value_or(std::vector<std::string>());
}

std::string Review::product(const std::vector<std::string> &axes) const {
  return plan.parts().sized(axes, " * ");
}

std::vector<std::string> Review::allAxes() const {
  std::vector<std::string> names;
  for (const AxisSpec &axis : plan.mesh) {
    names.push_back(axis.name);
  }
  return names;
}

std::optional<int64_t> Review::shards(const std::vector<std::string> &axes) const {
  int64_t ways = 1;
  for (const std::string &name : axes) {
    const AxisSpec *axis = plan.axis(name);
    if (!axis || axis->size < 1 || axis->size > (int64_t(1) << 40) / ways) {
      return std::nullopt;
    }
    ways *= axis->size;
  }
  return ways;
}

std::optional<int64_t> Review::allRanks() const {
  std::optional<int64_t> ranks = shards(allAxes());
  return ranks ? std::optional(*ranks * plan.pipeline.stages) : ranks;
}

/// legal_r4. Suggests sizes of one axis with which the plan is legal.
void Review::checkRanks() {
  std::optional<int64_t> ranks = allRanks();
  if (!request.ranks || !ranks || *ranks == *request.ranks) {
    return;
  }
  std::vector<std::string> fitting;
  for (size_t i = 0; i < plan.mesh.size(); ++i) {
    if (parseSubAxis(plan.mesh[i].name)) {
      continue; // Another size would be another split of its axis.
    }
    int64_t others = *ranks / plan.mesh[i].size;
    PlanSpec changed = plan;
    changed.mayPad = false; // Suggests no sizes that need padding.
    changed.mesh[i].size = *request.ranks / others;
    if (*request.ranks % others == 0 && changed.mesh[i].size > 1 &&
        validatePlan(model, recipe, machine, changed).empty()) {
      fitting.push_back(plan.mesh[i].name + "=" + text(changed.mesh[i].size));
    }
  }
  const bool hasSeveral = plan.mesh.size() + (plan.pipeline.stages > 1 ? 1 : 0) > 1;
  std::string has =
      *ranks == 1 ? "1 rank"
                  : plan.ranksText() + (hasSeveral ? " are " : " is ") + text(*ranks) + " ranks";
  error(meshLocation(), "legal_r4",
        has + ", expected " + text(*request.ranks) +
            (fitting.empty() ? "" : ", use " + choice(fitting)));
}

/// legal_r5 and legal_r9. Without padding, legal_r2 reports it.
void Review::checkShards() {
  std::set<std::pair<std::string, int64_t>> warned;
  for (const std::vector<ShardingSpec> *entries : {&plan.shardings, &plan.homes}) {
    bool areHomes = entries == &plan.homes;
    for (const ShardingSpec &entry : *entries) {
      std::optional<int64_t> ways = shards(entry.axes);
      std::optional<int64_t> size = dimensionSize(model, recipe, entry.dimension);
      if (!plan.mayPad || !ways || !size || *size % *ways == 0 ||
          (!areHomes && !canBePadded(entry.dimension)) ||
          !warned.insert({entry.dimension, *ways}).second) {
        continue;
      }
      int64_t each = (*size + *ways - 1) / *ways, padded = each * *ways;
      int64_t empty = areHomes ? 0 : *ways - (*size + each - 1) / each;
      const char *least = request.alignsRows && !areHomes ? "at least " : "";
      result.warnings.push_back(
          diagnostic(entry.location, empty > 0 ? "legal_r5" : "legal_r9",
                     product(entry.axes) + " does not divide " + entry.dimension + "=" +
                         text(*size) + ", which is padded to " + least + text(padded) +
                         (areHomes ? " between steps: ranks store " : ": ranks compute ") + least +
                         text(100.0 * double(padded - *size) / double(*size), "%") +
                         " more of each value with it" +
                         (empty > 0 ? ", and " + text(empty) + " of " + text(*ways) + " shards " +
                                          (empty == 1 ? "is" : "are") + " padding alone"
                                    : "")));
    }
  }
}

/// legal_r6
void Review::checkBatch() {
  if (!request.microBatch || !request.accumulation) {
    return;
  }
  std::vector<std::string> axes = batchAxes();
  std::optional<int64_t> groups = shards(axes);
  if (!groups || (recipe.globalBatch % *groups != 0 && !plan.mayPad)) {
    return; // legal_r2 says so.
  }
  if (recipe.globalBatch % *groups != 0) {
    error(meshLocation(), "legal_r6",
          "a batch of " + text(recipe.globalBatch) + " samples is no multiple of " + product(axes) +
              ", so it cannot be cut into micro-batches");
    return;
  }
  int64_t each = recipe.globalBatch / *groups, micro = *request.microBatch;
  if (micro > 0 && each % micro == 0 && each / micro == *request.accumulation) {
    return;
  }
  std::vector<std::string> fitting;
  if (micro > 0 && each % micro == 0) {
    fitting = {"an accumulation of " + text(each / micro)};
  } else {
    for (int64_t step : {-1, 1}) { // The divisors next to it.
      int64_t near = std::clamp(micro, int64_t(1), each);
      while (near >= 1 && near <= each && each % near != 0) {
        near += step;
      }
      std::string use =
          "a micro-batch of " + text(near) + " with an accumulation of " + text(each / near);
      if (fitting.empty() || fitting.front() != use) {
        fitting.push_back(use);
      }
    }
  }
  error(meshLocation(), "legal_r6",
        "a batch of " + text(recipe.globalBatch) + " samples is not " +
            (axes.empty() ? "" : product(axes) + " * ") + "micro-batch " + text(micro) +
            " * accumulation " + text(*request.accumulation) + ", use " + choice(fitting));
}

/// legal_r10
void Review::checkAccumulation() {
  int64_t count = plan.accumulation;
  std::vector<std::string> axes = batchAxes();
  std::optional<int64_t> groups = shards(axes);
  if (count <= 1 || !groups || (recipe.globalBatch % *groups != 0 && !plan.mayPad)) {
    return; // legal_r2 says so.
  }
  if (recipe.globalBatch % *groups != 0) {
    error(plan.accumulationLocation, "legal_r10",
          "a batch of " + text(recipe.globalBatch) + " samples is no multiple of " + product(axes) +
              ", so it cannot be cut into micro-batches");
    return;
  }
  int64_t each = recipe.globalBatch / *groups;
  if (each % count == 0) {
    checkOtherBatches(recipe.globalBatch / count);
    return checkWholeBatch(recipe.globalBatch / count);
  }
  std::vector<std::string> fitting;
  for (int64_t step : {-1, 1}) { // The divisors next to it.
    int64_t near = std::clamp(count, int64_t(1), each);
    while (near >= 1 && near <= each && each % near != 0) {
      near += step;
    }
    if (near >= 1 && near <= each && (fitting.empty() || fitting.front() != text(near))) {
      fitting.push_back(text(near));
    }
  }
  error(plan.accumulationLocation, "legal_r10",
        "a batch of " + text(recipe.globalBatch) + " samples does not divide into " +
            (axes.empty() ? "" : product(axes) + " * ") + text(count) + " micro-batches, use " +
            choice(fitting));
}

/// legal_r10, for entries that cut the batch of other values than inputs, when a micro-batch has
/// `samples`: micro-batches cannot be padded.
void Review::checkOtherBatches(int64_t samples) {
  for (const ShardingSpec &entry : plan.shardings) {
    std::optional<int64_t> ways = shards(entry.axes);
    if (entry.dimension == "batch" && ways && samples % *ways != 0) {
      result.errors.push_back({entry.location, entry.location.line > 0 ? "axes" : "", "legal_r10",
                               "expected axes that divide the " + text(samples) +
                                   " samples of a micro-batch, got " + product(entry.axes)});
    }
  }
}

/// legal_r15. Of all pins, only `recompute` gives layers.
void Review::checkLayers(const LayerRange &layers, const Location &location) {
  std::optional<int64_t> layer = layers.last ? layers.last : layers.first;
  if (!layer || (!model.graph && *layer < model.layers)) {
    return;
  }
  std::string field = location.line == 0 ? "recompute" : layers.last ? "last_layer" : "first_layer";
  std::string message =
      model.graph
          ? "a graph has no layers: use entries of a plan with values alone"
          : "expected a layer from 0 to " + text(model.layers - 1) + ", got " + text(*layer);
  result.errors.push_back({location, field, "legal_r15", message});
}

void Review::checkLayers() {
  for (const std::vector<ShardingSpec> *entries : {&plan.shardings, &plan.homes}) {
    for (const ShardingSpec &entry : *entries) {
      checkLayers(entry.layers, entry.location);
    }
  }
  for (const ActivationSpec &entry : plan.activations) {
    checkLayers(entry.layers, entry.location);
  }
}

/// legal_r16
void Review::checkPipeline() {
  const PipelineSpec &pipeline = plan.pipeline;
  if (pipeline.stages == 1) {
    return;
  }
  auto refuse = [&](const char *field, std::string message) {
    const bool isPin = pipeline.location.line == 0;
    result.errors.push_back({pipeline.location, isPin ? "pp" : std::string("pipeline") + field,
                             "legal_r16", std::move(message)});
  };
  if (model.graph) {
    refuse("", "a graph has no layers that stages could be cut at");
    return;
  }
  const auto chunks = int64_t(pipeline.stagesOfChunks().size());
  if (pipeline.layers.empty() && chunks > model.layers) {
    refuse("", "expected at most as many " +
                   std::string(chunks == pipeline.stages ? "stages" : "chunks of stages") +
                   " as the model's " + text(model.layers) + " layers, got " + text(chunks));
  } else if (!pipeline.layers.empty()) {
    int64_t sum = std::accumulate(pipeline.layers.begin(), pipeline.layers.end(), int64_t(0));
    if (sum != model.layers) {
      refuse(".layers", "expected stages of together the model's " + text(model.layers) +
                            " layers, got " + text(sum));
    }
  }
  if (plan.accumulation == 1) {
    refuse("", "expected at least 2 micro-batches for stages, got 1, use an accumulation of 2 or "
               "more; with M, " +
                   text(pipeline.stages) + " stages are idle for " + text(pipeline.stages - 1) +
                   " parts of every M + " + text(pipeline.stages - 1));
  }
}

/// legal_r10, for parts of a model or recipe that need all samples of a batch together, when a
/// micro-batch has `samples`. For a graph, this is checked after it was read.
void Review::checkWholeBatch(int64_t samples) {
  auto refuse = [&](const std::string &field, const std::string &use) {
    error(plan.accumulationLocation, "legal_r10",
          field + " needs the whole batch, got micro-batches of " + text(samples) +
              " samples, use an accumulation of 1" + use);
  };
  const RoutingSpec &routing = recipe.routing;
  if (routing.loadBalanceLoss > 0 && routing.loadBalanceGroup == RoutingGroup::GlobalBatch) {
    refuse("routing.load_balance_group: GLOBAL_BATCH", " or a load_balance_group of SEQUENCE");
  }
  if (routing.capacityFactor && routing.capacityGroup == RoutingGroup::GlobalBatch) {
    refuse("routing.capacity_group: GLOBAL_BATCH", " or a capacity_group of SEQUENCE");
  }
  if (routing.biasUpdateSpeed > 0) {
    refuse("routing.bias_update_speed", "");
  }
  if (recipe.fp8 && recipe.fp8->history == 0) {
    refuse("fp8 with one scale for each tensor", " or fp8.scaling: DELAYED");
  }
  if (model.graph && model.graph->batchNormGroup > 0 &&
      samples % model.graph->batchNormGroup != 0) {
    refuse("graph.batch_norm_group: " + text(model.graph->batchNormGroup), "");
  }
}

/// legal_r7, even if all ranks share everything equally. The parameters of a graph are in its file.
void Review::checkMemory() {
  std::optional<int64_t> ranks = allRanks();
  if (model.graph || !ranks) {
    return;
  }
  // With BF16, parameters and states are float32.
  double each = std::max(bytesOf(recipe.precision), bytesOf(Precision::F32));
  double bytes = double(parameterCount(model)) * (1 + fewestStates(recipe.optimizer)) * each;
  double room = double(machine.device.memoryBytes);
  if (bytes / double(*ranks) <= room) {
    return;
  }
  auto fewest = int64_t(bytes / room) + 1;
  error(meshLocation(), "legal_r7",
        "parameters and optimizer states need at least " +
            text(bytes / double(*ranks) / 1e9, "GB") + " on each of " + text(*ranks) +
            (*ranks == 1 ? " rank" : " ranks") + ", device " + machine.device.name + " has " +
            text(room / 1e9, "GB") + ", use at least " + text(fewest) + " ranks");
}

/// Dimensions that a layer's blocks sum over, and the block: one sum forward, and one of gradients
/// backward.
const std::map<std::string_view, std::string_view> summedBy = {
    {"kv_heads", "attention"}, {"group", "attention"}, {"head", "attention"}, {"ffn", "mlp"}};

double Review::sumSeconds(const cost::Predictor &predictor, cost::Group group) const {
  int64_t batch = shards(batchAxes()).value_or(1);
  double bytes = double(recipe.globalBatchTokens()) / double(batch) * double(model.hidden) *
                 bytesOf(recipe.reduction);
  return predictor.collective(rt::CollectiveKind::AllReduce, group, bytes);
}

/// together_r10
void Review::warnOfPeaks() {
  // Devices multiply FP8 numbers at twice the rate of BF16; data sheets round.
  constexpr double kMost = 2.05;
  const auto &measured = machine.device.measured.matmuls;
  auto isMeasured = [&](Precision precision) {
    return std::any_of(measured.begin(), measured.end(),
                       [&](const MatmulRate &rate) { return rate.precision == precision; });
  };
  if (!recipe.fp8 || !isMeasured(Precision::BF16) || isMeasured(Precision::F8)) {
    return;
  }
  const auto &bytes = machine.device.peakFlopsF8, &numbers = machine.device.peakFlopsBF16;
  if (bytes && numbers && *bytes > kMost * *numbers) {
    result.warnings.push_back(
        {{},
         "",
         "together_r10",
         "machine " + machine.name + " has " + text(*bytes / *numbers, "times") +
             " the peak_flops for F8 that it has for BF16, but measured matmuls for BF16 only: FP8 "
             "matmuls are predicted to be as many times faster, expected peaks of one source, or "
             "measured matmuls for F8"});
  }
}

/// legal_r8
void Review::warnOfNodes() {
  std::optional<int64_t> ranks = allRanks();
  if (model.graph || !ranks || *ranks > machine.devices()) {
    return;
  }
  /// The blocks with sums over the same axes, and the first entry that causes this.
  std::map<std::vector<std::string>, std::map<std::string_view, const ShardingSpec *>> sums;
  for (const ShardingSpec &entry : plan.shardings) {
    auto block = summedBy.find(entry.dimension);
    if (block != summedBy.end() && shards(entry.axes)) {
      sums[entry.axes].try_emplace(block->second, &entry);
    }
  }
  cost::Predictor predictor(machine);
  std::vector<int64_t> sizes;
  for (const AxisSpec &axis : plan.mesh) {
    sizes.push_back(axis.size);
  }
  for (const auto &[axes, blocks] : sums) {
    std::vector<uint32_t> numbers;
    for (const std::string &name : axes) {
      numbers.push_back(uint32_t(plan.axis(name) - plan.mesh.data()));
    }
    cost::Group group = cost::placeGroup(sizes, numbers, machine.devicesPerNode);
    if (!group.crossesNodes()) {
      continue;
    }
    const ShardingSpec &first = *blocks.begin()->second;
    const int64_t last = std::min(first.layers.last.value_or(model.layers), model.layers - 1);
    const int64_t layers = last - first.layers.first.value_or(0) + 1;
    double count = 2.0 * double(layers) * double(blocks.size());
    std::string advice = "at most " + text(machine.devicesPerNode) + " ranks are on one node";
    if (group.ranks <= machine.devicesPerNode) {
      double within = count * sumSeconds(predictor, {group.ranks, 1});
      advice = "within a node " + text(within, "s") + ", where the last axes of the mesh are";
    }
    result.warnings.push_back(
        diagnostic(first.location, "legal_r8",
                   "sums over " + product(axes) + " cross " + text(group.nodes) + " nodes, " +
                       text(int64_t(count)) + " times in a step, which takes about " +
                       text(count * sumSeconds(predictor, group), "s") + "; " + advice));
  }
}

/// legal_r12. No pass knows names of axes, but a user who writes this one expects stages.
void Review::warnOfStageAxis() {
  if (const AxisSpec *axis = plan.axis("pp")) {
    const std::string size = text(axis->size);
    result.warnings.push_back(
        diagnostic(axis->location, "legal_r12",
                   "axis pp=" + size +
                       " makes no pipeline stages: it is an axis like any other, and each of its "
                       "ranks computes all layers; for stages leave it out of the mesh, and use "
                       "--pin pp=" +
                       size + ", or pipeline { stages: " + size + " } in a plan"));
  }
}

/// legal_r13. Fewer ranks, up to a half, are a smaller job rather than a slip.
void Review::warnOfIdleDevices() {
  std::optional<int64_t> ranks = allRanks();
  int64_t devices = machine.devices();
  if (ranks && *ranks < devices && *ranks > devices / 2) {
    int64_t idle = devices - *ranks;
    result.warnings.push_back(diagnostic(meshLocation(), "legal_r13",
                                         plan.ranksText() + " uses " + text(*ranks) + " of the " +
                                             text(devices) + " devices of machine " + machine.name +
                                             ": " + text(idle) +
                                             (idle == 1 ? " is idle" : " are idle")));
  }
}

} // namespace

PlanReview reviewPlan(const ModelSpec &model, const RecipeSpec &recipe, const MachineSpec &machine,
                      const PlanSpec &plan, const PlanRequest &request) {
  return Review(model, recipe, machine, plan, request).run();
}

} // namespace weft::planner
