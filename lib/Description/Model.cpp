//===- Model.cpp - a model, with all defaults filled in -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Description/Model.h"

#include "Experts.h"
#include "Latent.h"
#include "Reader.h"
#include "Text.h"
#include "weft/model.pb.h"

#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numbers>

namespace weft::desc {

using detail::Fields;

static void checkSizes(const proto::Model &model, Fields &fields) {
  // model_r4
  fields.integer("layers", "model_r4", 1, 1 << 10);
  bool hidden = fields.integer("hidden", "model_r4", 1, 1 << 17);
  bool heads = fields.integer("heads", "model_r4", 1, 1 << 10);
  bool kvHeads = fields.integer("kv_heads", "model_r4", 1, 1 << 10);
  bool headSize = fields.integer("head_size", "model_r4", 1, 1 << 12);
  fields.integer("ffn", "model_r4", 1, 1 << 20);
  fields.integer("vocabulary", "model_r4", 2, 1 << 24);
  fields.integer("maximum_length", "model_r4", 1, 1 << 20);
  fields.integer("attention_window", "model_r4", 1, 1 << 20);

  // model_r5
  if (heads && kvHeads && model.heads() % model.kv_heads() != 0) {
    fields.error("heads", "model_r5",
                 "expected a multiple of kv_heads " + detail::text(model.kv_heads()) + ", got " +
                     detail::text(model.heads()));
  }
  if (!fields.has("head_size") && hidden && heads) {
    // model_r6
    if (model.hidden() % model.heads() != 0) {
      fields.error("hidden", "model_r6",
                   "expected a multiple of heads " + detail::text(model.heads()) +
                       " where head_size is not given, got " + detail::text(model.hidden()));
    } else if (model.hidden() / model.heads() > 1 << 12) {
      fields.error("hidden", "model_r6",
                   "expected hidden / heads to be at most 4096 where head_size is not given, got " +
                       detail::text(model.hidden() / model.heads()));
    } else if (model.positions() == proto::Model::ROTARY &&
               model.hidden() / model.heads() % 2 != 0) { // model_r7
      fields.error("hidden", "model_r7",
                   "expected hidden / heads to be even with ROTARY positions, got " +
                       detail::text(model.hidden() / model.heads()));
    }
  }
  // model_r7
  if (headSize && model.positions() == proto::Model::ROTARY && model.head_size() % 2 != 0) {
    fields.error("head_size", "model_r7",
                 "expected an even number with ROTARY positions, got " +
                     detail::text(model.head_size()));
  }
}

static void checkRotary(const proto::Rotary &rotary, Fields fields) {
  // model_r13
  fields.real("theta", "model_r13", {.low = 1, .high = 1e12, .above = true});
  fields.real("factor", "model_r13", {.low = 1, .high = 1e6});
  bool low =
      fields.real("low_frequency_factor", "model_r13", {.low = 0, .high = 1e6, .above = true}) ||
      !fields.has("low_frequency_factor");
  bool high =
      fields.real("high_frequency_factor", "model_r13", {.low = 0, .high = 1e6, .above = true}) ||
      !fields.has("high_frequency_factor");
  fields.integer("original_maximum_length", "model_r13", 1, 1 << 20);
  bool fast = fields.real("fast_turns", "model_r13", {.low = 0, .high = 1e6, .above = true}) ||
              !fields.has("fast_turns");
  bool slow = fields.real("slow_turns", "model_r13", {.low = 0, .high = 1e6, .above = true}) ||
              !fields.has("slow_turns");
  fields.real("rotated_scale", "model_r13", {.low = 0, .high = 100, .above = true});
  fields.real("score_scale", "model_r13", {.low = 0, .high = 100, .above = true});

  // model_r11
  if (rotary.scaling() == proto::Rotary::UNSCALED) {
    fields.refused("model_r11", {"factor"}, "with scaling UNSCALED");
  } else {
    fields.required("model_r11", {"factor"});
  }
  // model_r12
  bool isLlama3 = rotary.scaling() == proto::Rotary::LLAMA3;
  bool isYarn = rotary.scaling() == proto::Rotary::YARN;
  if (!isLlama3) {
    fields.refused("model_r12", {"low_frequency_factor", "high_frequency_factor"},
                   "without scaling LLAMA3");
  }
  if (!isYarn) {
    fields.refused("model_r12",
                   {"fast_turns", "slow_turns", "whole_pairs", "rotated_scale", "score_scale"},
                   "without scaling YARN");
  }
  if (!isLlama3 && !isYarn) {
    fields.refused("model_r12", {"original_maximum_length"}, "without scaling LLAMA3 or YARN");
    return;
  }
  fields.required("model_r12", {"original_maximum_length"});
  if (isYarn && fast && slow && rotary.slow_turns() >= rotary.fast_turns()) {
    fields.error("fast_turns", "model_r12",
                 "expected more than slow_turns " + detail::text(rotary.slow_turns()) + ", got " +
                     detail::text(rotary.fast_turns()));
  }
  if (isLlama3 && low && high && rotary.low_frequency_factor() >= rotary.high_frequency_factor()) {
    fields.error("high_frequency_factor", "model_r12",
                 "expected more than low_frequency_factor " +
                     detail::text(rotary.low_frequency_factor()) + ", got " +
                     detail::text(rotary.high_frequency_factor()));
  }
}

/// Refuses the fields of transformers in a model that is a graph, where they have no effect.
static void checkGraph(const proto::Model &model, Fields &fields) {
  // model_r18
  std::vector<const google::protobuf::FieldDescriptor *> given;
  model.GetReflection()->ListFields(model, &given);
  for (const google::protobuf::FieldDescriptor *field : given) {
    if (field->name() != "version" && field->name() != "name" && field->name() != "graph") {
      fields.refused("model_r18", {field->name().c_str()}, "with graph");
    }
  }
  Fields graph = fields.nested("graph");
  // model_r19
  graph.required("model_r19", {"file"});
  if (model.graph().has_file() && model.graph().file().empty()) {
    graph.error("file", "model_r19", "expected the name of a file");
  }
  // model_r20
  graph.integer("batch_norm_group", "model_r20", 1, 1 << 28);
}

static void checkModel(const proto::Model &model, Fields &fields) {
  // model_r2
  fields.required("model_r2", {"name"});
  fields.label("name", "model_r2");
  if (model.has_graph()) {
    checkGraph(model, fields);
    return;
  }
  // model_r3
  fields.required("model_r3", {"layers", "hidden", "heads", "ffn", "norm", "activation",
                               "positions", "vocabulary"});
  checkSizes(model, fields);
  // model_r8
  if (model.norm() == proto::Model::RMS_NORM && model.norm_bias()) {
    fields.error("norm_bias", "model_r8", "expected false with RMS_NORM, got true");
  }
  // model_r17
  if (model.norm() == proto::Model::LAYER_NORM && model.query_key_norm()) {
    fields.error("query_key_norm", "model_r17", "expected false with LAYER_NORM, got true");
  }
  // model_r9
  fields.real("norm_epsilon", "model_r9", {.low = 0, .high = 0.1, .above = true});
  if (model.has_rotary()) {
    checkRotary(model.rotary(), fields.nested("rotary"));
    // model_r10
    if (model.has_positions() && model.positions() != proto::Model::ROTARY) {
      fields.refused("model_r10", {"rotary"}, "without ROTARY positions");
    }
  }
  if (model.has_latent_attention()) {
    detail::checkLatent(model, fields);
  }
  if (model.has_experts()) {
    detail::checkExperts(model, fields.nested("experts"));
    // model_r25
    if (model.mlp_biases()) {
      fields.error("mlp_biases", "model_r25", "expected false with experts, got true");
    }
  }
  // model_r14
  fields.real("dropout", "model_r14", {.low = 0, .high = 1, .below = true});
  fields.real("attention_dropout", "model_r14", {.low = 0, .high = 1, .below = true});
  // model_r15
  if (model.has_positions() && model.positions() == proto::Model::LEARNED) {
    fields.required("model_r15", {"maximum_length"});
  }
  // model_r16
  if (model.has_initialization()) {
    fields.nested("initialization")
        .real("standard_deviation", "model_r16", {.low = 0, .high = 10, .above = true});
  }
}

// The schema lists the values of these enumerations in the same order.
static_assert(int(NormKind::RmsNorm) == proto::Model::Norm_MAX);
static_assert(int(ActivationKind::SwiGlu) == proto::Model::Activation_MAX);
static_assert(int(PositionKind::None) == proto::Model::Positions_MAX);
static_assert(int(RotaryScaling::Yarn) == proto::Rotary::Scaling_MAX);

double defaultRotatedScale(double factor) { return 0.1 * std::log(factor) + 1; }

static RotarySpec toSpec(const proto::Rotary &rotary) {
  RotarySpec spec;
  spec.theta = rotary.theta();
  spec.scaling = RotaryScaling(rotary.scaling());
  spec.factor = rotary.has_factor() ? rotary.factor() : 1.0;
  spec.lowFrequencyFactor = rotary.low_frequency_factor();
  spec.highFrequencyFactor = rotary.high_frequency_factor();
  spec.originalMaximumLength = rotary.original_maximum_length();
  spec.fastTurns = rotary.fast_turns();
  spec.slowTurns = rotary.slow_turns();
  spec.wholePairs = rotary.whole_pairs();
  spec.scoreScale = rotary.score_scale();
  if (spec.scaling == RotaryScaling::Yarn) {
    spec.rotatedScale =
        rotary.has_rotated_scale() ? rotary.rotated_scale() : defaultRotatedScale(spec.factor);
  }
  return spec;
}

static GraphSpec toSpec(const proto::Graph &graph, Fields fields) {
  GraphSpec spec;
  std::filesystem::path file(graph.file());
  std::filesystem::path description(fields.location().file);
  spec.path = (file.is_absolute() ? file : description.parent_path() / file).string();
  spec.constants.assign(graph.constant().begin(), graph.constant().end());
  spec.batchNormGroup = graph.batch_norm_group();
  spec.groupLocation = fields.locationOf("batch_norm_group");
  return spec;
}

static ModelSpec resolve(const proto::Model &model, Fields &fields) {
  ModelSpec spec;
  spec.name = model.name();
  if (model.has_graph()) {
    spec.graph = toSpec(model.graph(), fields.nested("graph"));
    return spec;
  }
  spec.layers = model.layers();
  spec.hidden = model.hidden();
  spec.heads = model.heads();
  spec.kvHeads = model.has_kv_heads() ? model.kv_heads() : model.heads();
  spec.headSize = model.has_head_size() ? model.head_size() : model.hidden() / model.heads();
  spec.ffn = model.ffn();
  spec.vocabulary = model.vocabulary();
  spec.maximumLength = model.maximum_length();
  spec.norm = NormKind(model.norm());
  spec.normEpsilon = model.norm_epsilon();
  spec.normBias = model.has_norm_bias() ? model.norm_bias() : spec.norm == NormKind::LayerNorm;
  spec.activation = ActivationKind(model.activation());
  spec.positions = PositionKind(model.positions());
  spec.rotary = toSpec(model.rotary());
  spec.attentionBiases = model.attention_biases();
  spec.attentionOutputBias =
      model.has_attention_output_bias() ? model.attention_output_bias() : model.attention_biases();
  spec.queryKeyNorm = model.query_key_norm();
  spec.attentionWindow = model.attention_window();
  spec.mlpBiases = model.mlp_biases();
  spec.dropout = model.dropout();
  spec.attentionDropout = model.attention_dropout();
  spec.tiedEmbeddings = model.tied_embeddings();
  if (model.has_latent_attention()) {
    spec.latent = detail::resolveLatent(model.latent_attention(), spec.headSize);
  }
  if (model.has_experts()) {
    spec.experts = detail::resolveExperts(model);
  }
  spec.initialization.standardDeviation = model.initialization().standard_deviation();
  spec.initialization.scaleResidualProjections =
      model.initialization().scale_residual_projections();
  return spec;
}

Result<ModelSpec> parseModel(std::string_view text, const std::string &file) {
  return detail::readDescription<proto::Model>(text, file, "model_r1", checkModel, resolve);
}

Result<ModelSpec> loadModel(const std::string &path) {
  return detail::loadDescription<ModelSpec>(path, parseModel);
}

int64_t ModelSpec::expertLayers() const {
  int64_t count = 0;
  for (int64_t layer = 0; layer < layers; ++layer) {
    count += hasExperts(layer) ? 1 : 0;
  }
  return count;
}

int64_t parameterCount(const ModelSpec &model) {
  int64_t queries = model.heads * model.headSize;
  int64_t keys = model.kvHeads * model.headSize;
  int64_t norm = model.hidden * (model.normBias ? 2 : 1);
  int64_t attention = 2 * model.hidden * (queries + keys) +
                      (model.attentionBiases ? queries + 2 * keys : 0) +
                      (model.attentionOutputBias ? model.hidden : 0) +
                      (model.queryKeyNorm ? 2 * model.headSize : 0);
  if (const std::optional<LatentSpec> &latent = model.latent) {
    int64_t plain = model.headSize - latent->rotarySize;
    int64_t ofQueries = latent->queryRank > 0 ? latent->queryRank * (model.hidden + 1 + queries)
                                              : model.hidden * queries;
    attention = ofQueries + model.hidden * (latent->keyValueRank + latent->rotarySize) +
                latent->keyValueRank * (1 + model.heads * (plain + latent->valueSize)) +
                model.hidden * model.heads * latent->valueSize;
  }
  int64_t inner = model.hasGate() ? 2 : 1;
  int64_t mlp = (inner + 1) * model.hidden * model.ffn +
                (model.mlpBiases ? inner * model.ffn + model.hidden : 0);
  int64_t ofExperts = model.expertLayers();
  int64_t mlps = (model.layers - ofExperts) * mlp;
  if (const std::optional<ExpertsSpec> &experts = model.experts) {
    int64_t elements = experts->count * experts->ffn + experts->sharedFfn;
    mlps += ofExperts * model.hidden *
            (experts->count + (inner + 1) * elements + (experts->sharedGate ? 1 : 0));
  }
  int64_t embeddings = (model.tiedEmbeddings ? 1 : 2) * model.vocabulary * model.hidden;
  if (model.positions == PositionKind::Learned) {
    embeddings += model.maximumLength * model.hidden;
  }
  return embeddings + model.layers * (attention + 2 * norm) + mlps + norm;
}

/// A frequency after Llama3 scaling: kept for short waves, divided by the factor for long ones, a
/// mix that is linear in the number of waves that fit into the original length between.
static double scaleAsLlama3(const RotarySpec &rotary, double frequency) {
  double waves = double(rotary.originalMaximumLength) * frequency / (2 * std::numbers::pi);
  double kept = (waves - rotary.lowFrequencyFactor) /
                (rotary.highFrequencyFactor - rotary.lowFrequencyFactor);
  kept = std::clamp(kept, 0.0, 1.0);
  return kept * frequency + (1 - kept) * frequency / rotary.factor;
}

/// Returns the number, a real one, of the pair that turns this often in the original length,
/// counted from the fastest.
static double pairOfTurns(const RotarySpec &rotary, double size, double turns) {
  double length = double(rotary.originalMaximumLength);
  return size * std::log(length / (turns * 2 * std::numbers::pi)) / (2 * std::log(rotary.theta));
}

/// A frequency after Yarn scaling, of pair number `pair`.
static double scaleAsYarn(const RotarySpec &rotary, double size, double pair, double frequency) {
  double first = pairOfTurns(rotary, size, rotary.fastTurns);
  double last = pairOfTurns(rotary, size, rotary.slowTurns);
  if (rotary.wholePairs) {
    first = std::floor(first);
    last = std::ceil(last);
  }
  first = std::max(first, 0.0);
  last = std::min(last, size - 1);
  double width = first == last ? 1e-3 : last - first;
  double stretched = std::clamp((pair - first) / width, 0.0, 1.0);
  return stretched * frequency / rotary.factor + (1 - stretched) * frequency;
}

std::vector<double> rotaryFrequencies(const ModelSpec &model) {
  auto size = double(model.rotarySize());
  std::vector<double> frequencies(size_t(model.rotarySize() / 2));
  for (size_t i = 0; i < frequencies.size(); ++i) {
    double frequency = std::pow(model.rotary.theta, -2.0 * double(i) / size);
    switch (model.rotary.scaling) {
    case RotaryScaling::None:
      break;
    case RotaryScaling::Linear:
      frequency /= model.rotary.factor;
      break;
    case RotaryScaling::Llama3:
      frequency = scaleAsLlama3(model.rotary, frequency);
      break;
    case RotaryScaling::Yarn:
      frequency = scaleAsYarn(model.rotary, size, double(i), frequency);
      break;
    }
    frequencies[i] = frequency;
  }
  return frequencies;
}

} // namespace weft::desc
