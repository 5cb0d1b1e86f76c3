//===- Strategies.cpp - names of known strategies for plans ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Description/Strategies.h"

#include "Text.h"
#include "weft/Description/LayerKinds.h"
#include "weft/Description/Pins.h"

#include <algorithm>
#include <cmath>

namespace weft::desc {
namespace {

using Axes = std::vector<std::string>;

bool contains(const Axes &axes, const std::string &axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

void add(Axes &axes, const Axes &more) {
  for (const std::string &axis : more) {
    if (!contains(axes, axis)) {
      axes.push_back(axis);
    }
  }
}

/// Returns those of `axes` that are in `others`, or those that are not.
Axes only(const Axes &axes, const Axes &others, bool in) {
  Axes found;
  std::copy_if(axes.begin(), axes.end(), std::back_inserter(found),
               [&](const std::string &axis) { return contains(others, axis) == in; });
  return found;
}

class Recognizer {
public:
  Recognizer(const PlanSpec &plan, const std::vector<VariableShape> &variables)
      : plan(plan), variables(variables) {}

  std::vector<std::string> run() {
    if (plan.accumulation > 1) {
      lines.push_back("gradient accumulation over " + std::to_string(plan.accumulation) +
                      " micro-batches");
    }
    nameActivations();
    nameStages();
    if (plan.mesh.empty()) {
      lines.push_back(plan.pipeline.stages > 1 ? "one rank for each stage" : "one rank");
      return std::move(lines);
    }
    const std::vector<LayerKind> kinds = layerKinds(plan);
    if (kinds.size() == 1) {
      nameShardings(/*withEnds=*/true);
      return std::move(lines);
    }
    for (const LayerKind &kind : kinds) {
      nameKind(kind);
    }
    return std::move(lines);
  }

private:
  /// With the embedding and the head, or of layers alone.
  void nameShardings(bool withEnds) {
    batch = of("attention.query", "batch");
    context = of("attention.query", "sequence");
    experts = of("experts.up", "experts");
    nameData();
    nameContext();
    nameTensor();
    if (withEnds) {
      nameVocabulary();
    }
    nameExperts();
    nameHomes();
    nameIdle();
  }

  /// Names the strategies of some layers; the first ones stand for what is of no layer, too.
  void nameKind(const LayerKind &kind) {
    const bool isFirst = kind.front().first == 0;
    PlanSpec own = plan;
    for (std::vector<ShardingSpec> *entries : {&own.shardings, &own.homes}) {
      std::erase_if(*entries, [&](const ShardingSpec &entry) {
        return !entry.layers.has(kind.front().first);
      });
      for (ShardingSpec &entry : *entries) {
        entry.layers = {};
      }
    }
    std::vector<VariableShape> shapes;
    for (const VariableShape &variable : variables) {
      std::optional<int64_t> layer = layerOfName(variable.name);
      if (layer ? desc::kindOf({kind}, *layer) == 0 : isFirst) {
        shapes.push_back(variable);
      }
    }
    Recognizer recognizer(own, shapes);
    recognizer.nameShardings(isFirst);
    std::string layers;
    for (const LayerRange &run : kind) {
      layers += (layers.empty() ? "" : ", ") + wordsOf(run);
    }
    lines.push_back(layers + (isFirst ? ", and what is of no layer:" : ":"));
    for (const std::string &line : recognizer.lines) {
      lines.push_back("  " + line);
    }
  }

  void nameActivations() {
    if (plan.activations.empty()) {
      return;
    }
    for (auto [pin, sentence] : {
             std::pair(
                 "recompute=full",
                 "backward recomputes the layers, whose inputs are kept (full recomputation)"),
             std::pair("recompute=attention",
                       "backward recomputes attention (selective recomputation)"),
             std::pair("recompute=none", "what backward needs is kept"),
         }) {
      if (applyPins({pin})->activations == plan.activations) {
        lines.push_back(sentence);
        return;
      }
    }
    lines.push_back("backward recomputes what the plan's activation entries say");
  }

  void nameStages() {
    const PipelineSpec &pipeline = plan.pipeline;
    if (pipeline.stages == 1) {
      return;
    }
    std::string layers;
    for (int64_t count : pipeline.layers) {
      layers += (layers.empty() ? " of " : ", ") + std::to_string(count);
    }
    const char *order = !pipeline.order.empty()                               ? ", its own order"
                        : pipeline.schedule == PipelineSchedule::GPipe        ? ", GPipe"
                        : pipeline.schedule == PipelineSchedule::ZeroBubbleH1 ? ", ZB-H1"
                        : pipeline.schedule == PipelineSchedule::ZeroBubbleV  ? ", ZB-V"
                        : pipeline.chunks > 1 ? ", interleaved one forward one backward"
                                              : ", one forward one backward";
    const char *gathers =
        pipeline.gather == GatherPeriod::Run ? ", parameters gathered for each run of a chunk"
        : pipeline.gather == GatherPeriod::MicroBatch ? ", parameters gathered for each micro-batch"
                                                      : "";
    const auto chunks = pipeline.stagesOfChunks().size();
    lines.push_back("pipeline of " + std::to_string(pipeline.stages) + " stages" +
                    (int64_t(chunks) > pipeline.stages ? " in " + std::to_string(chunks) + " chunks"
                                                       : std::string()) +
                    layers + (layers.empty() ? "" : " layers") + order + gathers);
  }

  /// The axes that cut a dimension of an operation.
  Axes of(const char *value, const char *dimension) const {
    bool isThere = std::string_view(dimension) == "keys" ||
                   std::string_view(dimension) == "sequence" || hasDimension(dimension);
    return isThere ? axesFor(plan.shardings, value, dimension).value_or(Axes()) : Axes();
  }

  bool hasDimension(std::string_view dimension) const {
    return dimension == "batch" ||
           std::any_of(variables.begin(), variables.end(), [&](const VariableShape &variable) {
             return std::find(variable.dimensions.begin(), variable.dimensions.end(), dimension) !=
                    variable.dimensions.end();
           });
  }

  /// "dp=64" or "dp=8, cp=2".
  std::string sized(const Axes &axes) const { return plan.parts().sized(axes, ", "); }

  void nameData() {
    if (!batch.empty()) {
      lines.push_back("data parallelism over " + sized(batch));
    }
    add(used, batch);
  }

  void nameContext() {
    Axes keys = of("attention", "keys"), sequence = of("attention", "sequence");
    for (const std::string &axis : context) {
      std::string form = contains(keys, axis)       ? "keys go round in a ring"
                         : contains(sequence, axis) ? "keys are gathered"
                                                    : "heads for sequence by all-to-all";
      lines.push_back("context parallelism over " + sized({axis}) + ", " + form);
    }
    add(used, context);
  }

  void nameTensor() {
    Axes attention, mlp = only(of("mlp.up", "ffn"), of("mlp.up", "batch"), false);
    for (const char *dimension : {"kv_heads", "group", "head"}) {
      Axes cut = only(of("attention", dimension), of("attention", "batch"), false);
      add(attention, only(cut, context, false));
    }
    add(mlp, only(of("experts.up", "ffn"), of("experts.up", "batch"), false));
    Axes both = only(attention, mlp, true);
    Axes between = of("mlp_norm", "sequence");
    add(between, of("attention_norm", "sequence"));
    std::string form = only(only(between, context, false), both, true).empty()
                           ? ""
                           : ", with sequence parallelism";
    name("tensor parallelism (Megatron)", both, form);
    name("tensor parallelism of attention alone", only(attention, mlp, false), "");
    name("tensor parallelism of the MLP alone", only(mlp, attention, false), "");
  }

  void nameVocabulary() {
    Axes embedding = of("embed.tokens", "vocab"), head = of("head", "vocab");
    Axes both = only(embedding, head, true);
    name("vocabulary-parallel embedding and loss", both, "");
    name("vocabulary-parallel embedding", only(embedding, both, false), "");
    name("vocabulary-parallel loss", only(head, both, false), "");
  }

  void nameExperts() { name("expert parallelism", experts, ""); }

  enum class Held { Parameters, States, GradientSums };
  static Held kindOf(const VariableShape &variable) {
    return variable.name.starts_with("gradient/")         ? Held::GradientSums
           : variable.name.find('/') != std::string::npos ? Held::States
                                                          : Held::Parameters;
  }

  /// The sharding of parameters, of states or of sums of gradients over axes that also cut samples:
  /// the share of their bytes that is cut, and the axes. Expert parallelism does not count as a cut
  /// here, because experts on different ranks are not copies.
  struct Homes {
    double share = 0;
    Axes axes, ofExperts;
  };
  Homes homesOf(Held kind) const {
    Axes data = batch;
    add(data, context);
    Homes homes;
    double all = 0, cut = 0;
    for (const VariableShape &variable : variables) {
      if (kindOf(variable) != kind) {
        continue;
      }
      Axes found;
      for (const std::string &dimension : variable.dimensions) {
        Axes home = axesFor(plan.homes, variable.name, dimension).value_or(Axes());
        bool isExperts = dimension == "experts"; // The router's too.
        if (!isExperts || variable.name.find("experts.") != std::string::npos) {
          add(isExperts ? homes.ofExperts : found, only(home, data, true));
        }
      }
      all += variable.bytes;
      cut += found.empty() ? 0 : variable.bytes;
      add(homes.axes, found);
    }
    homes.share = all > 0 ? cut / all : 0;
    return homes;
  }

  void nameHomes() {
    Axes data = batch;
    add(data, context);
    if (data.empty()) {
      return;
    }
    Homes parameters = homesOf(Held::Parameters), states = homesOf(Held::States);
    auto percent = [](double share) { return std::to_string(std::lround(100 * share)) + " %"; };
    auto copies = [&](const Homes &homes) {
      Axes left = only(data, homes.axes, false);
      return left.empty() ? "" : ", " + copiesOver(left, homes.ofExperts);
    };
    if (parameters.share >= 0.5) {
      std::string among = copies(parameters);
      lines.push_back((among.empty() ? "ZeRO-3 (FSDP) over " : "HSDP over ") +
                      sized(parameters.axes) + ": " + percent(parameters.share) + " of parameters" +
                      among);
    } else if (states.share >= 0.5) {
      bool isOfGradients = homesOf(Held::GradientSums).share >= 0.5;
      lines.push_back(
          (isOfGradients ? "ZeRO-2 over " : "ZeRO-1 over ") + sized(states.axes) + ": " +
          percent(states.share) + " of optimizer states" +
          (parameters.share > 0 ? ", " + percent(parameters.share) + " of parameters" : "") +
          copies(states) + "; " +
          (plan.accumulation == 1 || isOfGradients ? "gradients are cut likewise (ZeRO-2)"
                                                   : "sums of gradients are whole"));
    } else {
      lines.push_back("ZeRO-0: parameters and optimizer states are " +
                      copiesOver(data, parameters.ofExperts));
    }
  }

  /// "copies over dp=2, and over ep=2 but for experts".
  std::string copiesOver(const Axes &axes, const Axes &ofExperts) const {
    Axes all = only(axes, ofExperts, false), others = only(axes, ofExperts, true);
    std::string text = all.empty() ? "copies" : "copies over " + sized(all);
    if (!others.empty()) {
      text += (all.empty() ? " over " : ", and over ") + sized(others) + " but for experts";
    }
    return text;
  }

  void nameIdle() {
    Axes idle;
    for (const AxisSpec &axis : plan.mesh) {
      if (!contains(used, axis.name)) {
        idle.push_back(axis.name);
      }
    }
    if (!idle.empty()) {
      lines.push_back("no strategy with a name over " + sized(idle));
    }
  }

  void name(const char *strategy, const Axes &axes, const std::string &form) {
    if (!axes.empty()) {
      lines.push_back(std::string(strategy) + " over " + sized(axes) + form);
      add(used, axes);
    }
  }

  const PlanSpec &plan;
  const std::vector<VariableShape> &variables;
  Axes batch, context, experts, used;
  std::vector<std::string> lines;
};

/// Returns a plan without entries on the mesh of `plan`, with axes that are not split.
PlanSpec withoutEntries(const PlanSpec &plan) {
  PlanSpec open;
  const MeshParts parts = plan.parts();
  for (const SplitAxis &axis : parts.axes()) {
    open.mesh.push_back({axis.name, axis.size(), {}});
  }
  open.accumulation = plan.accumulation;
  open.activations = plan.activations;
  open.pipeline = plan.pipeline;
  return open;
}

/// FSDP over all ranks: every axis cuts the batch, and variables between steps.
PlanSpec shardedData(PlanSpec all) {
  Axes axes;
  for (const AxisSpec &axis : all.mesh) {
    axes.push_back(axis.name);
  }
  for (std::string_view dimension : dimensionNames()) {
    bool isBatch = dimension == "batch", isHidden = dimension == "hidden";
    if (!isHidden) {
      all.shardings.push_back({"*", std::string(dimension), isBatch ? axes : Axes(), {}});
    }
    if (!isBatch && dimension != "keys" && dimension != "sequence") {
      all.homes.push_back({"*", std::string(dimension), isHidden ? axes : Axes(), {}});
    }
  }
  return all;
}

} // namespace

std::vector<std::string> recognize(const PlanSpec &plan,
                                   const std::vector<VariableShape> &variables) {
  return Recognizer(plan, variables).run();
}

std::vector<Strategy> knownStrategies(const PlanSpec &plan) {
  const PlanSpec open = withoutEntries(plan);
  std::vector<std::string> axes;
  for (const AxisSpec &axis : open.mesh) {
    static constexpr std::string_view known[] = {"dp", "fsdp", "ep", "cp", "tp"};
    if (std::find(std::begin(known), std::end(known), axis.name) == std::end(known)) {
      return {};
    }
    axes.push_back(axis.name + "=" + std::to_string(axis.size));
  }
  bool hasData = open.axis("dp") || open.axis("fsdp") || open.axis("cp"),
       hasTensor = open.axis("tp");
  std::vector<Strategy> strategies;
  auto addPins = [&](std::string name, std::vector<std::string> pins) {
    pins.insert(pins.begin(), axes.begin(), axes.end());
    if (Result<PlanSpec> pinned = applyPins(pins)) {
      pinned->mesh = open.mesh; // Which may number its ranks in another order.
      pinned->accumulation = plan.accumulation;
      pinned->activations = plan.activations;
      pinned->pipeline = plan.pipeline;
      strategies.push_back({std::move(name), *pinned});
    }
  };
  std::string ranks = detail::join(axes);
  for (const char *sequence : {"true", "false"}) {
    for (const char *stage : {"0", "1", "3"}) {
      std::vector<std::string> pins;
      std::string name = ranks;
      if (hasTensor) {
        pins.push_back(std::string("sp=") + sequence);
        name += ", " + pins.back();
      }
      if (hasData) {
        pins.push_back(std::string("zero=") + stage);
        name += ", " + pins.back();
      }
      bool isFirst = hasData || std::string_view(stage) == "0";
      if (isFirst && (hasTensor || std::string_view(sequence) == "true") && !pins.empty()) {
        addPins(name, pins);
      }
    }
  }
  if (!open.mesh.empty()) {
    strategies.push_back({"ZeRO-3 (FSDP) over all ranks", shardedData(open)});
  }
  // Of several chunks, a stage needs the parameters of one at a time.
  if (plan.pipeline.chunks > 1 && hasData) {
    for (GatherPeriod period : {GatherPeriod::Step, GatherPeriod::Run, GatherPeriod::MicroBatch}) {
      if (period != plan.pipeline.gather) {
        strategies.push_back({"this plan, gather=" + std::string(nameOf(period)), plan});
        strategies.back().plan.pipeline.gather = period;
      }
    }
  }
  return strategies;
}

} // namespace weft::desc
