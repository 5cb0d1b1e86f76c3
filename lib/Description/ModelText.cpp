//===- ModelText.cpp - prints a model's description -----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Text.h"
#include "weft/Description/Model.h"
#include "weft/model.pb.h"

#include <google/protobuf/stubs/strutil.h>

namespace weft::desc {

namespace {

/// Fields one after another, in a message that may be nested.
class FieldWriter {
public:
  explicit FieldWriter(std::string indent = "") : indent(std::move(indent)) {}

  void word(const char *name, const std::string &value) {
    text += indent + name + ": " + value + "\n";
  }
  void number(const char *name, int64_t value) { word(name, detail::text(value)); }
  void number(const char *name, int64_t value, int64_t unless) {
    if (value != unless) {
      number(name, value);
    }
  }
  void real(const char *name, double value, double unless) {
    if (value != unless) {
      word(name, detail::text(value));
    }
  }
  void flag(const char *name, bool value, bool unless) {
    if (value != unless) {
      word(name, value ? "true" : "false");
    }
  }
  /// Writes nothing if `fields` is empty.
  void message(const char *name, const FieldWriter &fields) {
    if (!fields.text.empty()) {
      text += indent + name + " {\n" + fields.text + indent + "}\n";
    }
  }

  std::string take() { return std::move(text); }

private:
  std::string indent, text;
};

FieldWriter rotaryFields(const RotarySpec &rotary) {
  RotarySpec defaults;
  FieldWriter fields("  ");
  fields.real("theta", rotary.theta, defaults.theta);
  if (rotary.scaling != RotaryScaling::None) {
    fields.word("scaling", proto::Rotary::Scaling_Name(proto::Rotary::Scaling(rotary.scaling)));
    fields.word("factor", detail::text(rotary.factor));
  }
  if (rotary.scaling == RotaryScaling::Llama3) {
    fields.real("low_frequency_factor", rotary.lowFrequencyFactor, defaults.lowFrequencyFactor);
    fields.real("high_frequency_factor", rotary.highFrequencyFactor, defaults.highFrequencyFactor);
    fields.number("original_maximum_length", rotary.originalMaximumLength);
  }
  if (rotary.scaling == RotaryScaling::Yarn) {
    fields.number("original_maximum_length", rotary.originalMaximumLength);
    fields.real("fast_turns", rotary.fastTurns, defaults.fastTurns);
    fields.real("slow_turns", rotary.slowTurns, defaults.slowTurns);
    fields.flag("whole_pairs", rotary.wholePairs, defaults.wholePairs);
    fields.real("rotated_scale", rotary.rotatedScale, defaultRotatedScale(rotary.factor));
    fields.real("score_scale", rotary.scoreScale, defaults.scoreScale);
  }
  return fields;
}

FieldWriter latentFields(const LatentSpec &latent, int64_t headSize) {
  FieldWriter fields("  ");
  fields.number("key_value_rank", latent.keyValueRank);
  fields.number("query_rank", latent.queryRank, 0);
  fields.number("rotary_size", latent.rotarySize);
  fields.number("value_size", latent.valueSize, headSize - latent.rotarySize);
  return fields;
}

FieldWriter expertsFields(const ExpertsSpec &experts, int64_t ffn) {
  ExpertsSpec defaults;
  FieldWriter fields("  ");
  fields.number("experts", experts.count);
  fields.number("experts_per_token", experts.perToken);
  fields.number("ffn", experts.ffn, ffn);
  fields.number("shared_ffn", experts.sharedFfn, 0);
  fields.flag("shared_gate", experts.sharedGate, false);
  fields.number("first_layer", experts.firstLayer, defaults.firstLayer);
  fields.number("layer_period", experts.layerPeriod, defaults.layerPeriod);
  if (experts.scoring == ScoringKind::Sigmoid) {
    fields.word("scoring", proto::Experts::Scoring_Name(proto::Experts::Scoring(experts.scoring)));
  }
  fields.flag("normalize", experts.normalizes, experts.perToken > 1);
  fields.real("scale", experts.scale, defaults.scale);
  fields.number("groups", experts.groups, defaults.groups);
  fields.number("kept_groups", experts.keptGroups, experts.groups);
  fields.flag("selection_bias", experts.selectionBias, false);
  return fields;
}

std::string quoted(const std::string &text) {
  return "\"" + google::protobuf::CEscape(text) + "\"";
}

FieldWriter graphFields(const GraphSpec &graph) {
  FieldWriter fields("  ");
  fields.word("file", quoted(graph.path));
  for (const std::string &name : graph.constants) {
    fields.word("constant", quoted(name));
  }
  fields.number("batch_norm_group", graph.batchNormGroup, 0);
  return fields;
}

void writeSizes(const ModelSpec &model, FieldWriter &fields) {
  fields.number("layers", model.layers);
  fields.number("hidden", model.hidden);
  fields.number("heads", model.heads);
  fields.number("kv_heads", model.kvHeads, model.heads);
  if (model.headSize * model.heads != model.hidden) {
    fields.number("head_size", model.headSize);
  }
  fields.number("ffn", model.ffn);
}

} // namespace

std::string printModel(const ModelSpec &model) {
  ModelSpec defaults;
  FieldWriter fields;
  fields.number("version", 1);
  fields.word("name", "\"" + model.name + "\"");
  if (model.graph) {
    fields.message("graph", graphFields(*model.graph));
    return fields.take();
  }
  writeSizes(model, fields);
  bool isLayerNorm = model.norm == NormKind::LayerNorm;
  fields.word("norm", proto::Model::Norm_Name(proto::Model::Norm(model.norm)));
  fields.real("norm_epsilon", model.normEpsilon, defaults.normEpsilon);
  fields.flag("norm_bias", model.normBias, isLayerNorm);
  fields.word("activation",
              proto::Model::Activation_Name(proto::Model::Activation(model.activation)));
  fields.word("positions", proto::Model::Positions_Name(proto::Model::Positions(model.positions)));
  if (model.positions == PositionKind::Rotary) {
    fields.message("rotary", rotaryFields(model.rotary));
  }
  fields.flag("attention_biases", model.attentionBiases, false);
  fields.flag("attention_output_bias", model.attentionOutputBias, model.attentionBiases);
  fields.flag("query_key_norm", model.queryKeyNorm, false);
  fields.number("attention_window", model.attentionWindow, 0);
  fields.flag("mlp_biases", model.mlpBiases, false);
  fields.real("dropout", model.dropout, 0);
  fields.real("attention_dropout", model.attentionDropout, 0);
  fields.flag("tied_embeddings", model.tiedEmbeddings, false);
  fields.number("vocabulary", model.vocabulary);
  fields.number("maximum_length", model.maximumLength, 0);
  if (model.latent) {
    fields.message("latent_attention", latentFields(*model.latent, model.headSize));
  }
  if (model.experts) {
    fields.message("experts", expertsFields(*model.experts, model.ffn));
  }
  FieldWriter initialization("  ");
  initialization.real("standard_deviation", model.initialization.standardDeviation,
                      defaults.initialization.standardDeviation);
  initialization.flag("scale_residual_projections", model.initialization.scaleResidualProjections,
                      defaults.initialization.scaleResidualProjections);
  fields.message("initialization", initialization);
  return fields.take();
}

} // namespace weft::desc
