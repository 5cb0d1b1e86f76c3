//===- LlamaConfig.cpp - keys of config.json of Llama and its relatives ---===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ConfigReaders.h"

#include "support/Text.h"

#include <cmath>

using namespace weft;
using namespace weft::hf;
using llvm::StringRef;

namespace {

/// Reads the keys of Llama and of the kinds derived from it.
class LlamaReader {
public:
  LlamaReader(Keys &keys, Config &config)
      : keys(keys), kind(config.kind), config(config), model(config.model) {}

  void read();

private:
  void readSizes();
  void readBiases();
  void readRotary();
  void readRotaryScaling(Keys &scaling, StringRef typeKey);
  void readYarn(Keys &scaling);
  void readWindow();
  /// Returns true if all layers have a window, by the layers' types or by the first layer that has
  /// one.
  bool slidesInAllLayers(bool slides);
  bool slidesByTypes(const llvm::json::Array &types);

  Keys &keys;
  Kind kind;
  Config &config;
  desc::ModelSpec &model;
};

void LlamaReader::read() {
  readSizes();
  model.norm = desc::NormKind::RmsNorm;
  model.normBias = false;
  model.normEpsilon = keys.real("rms_norm_eps", kind == Kind::Mixtral ? 1e-5 : 1e-6);
  if (std::string name = keys.word("hidden_act", StringRef("silu")); name != "silu") {
    keys.refuse("hidden_act", "expected silu: the MLP is down(silu(gate(x)) * up(x)), got '" +
                                  readable(name) + "'");
  }
  model.activation = desc::ActivationKind::SwiGlu;
  model.positions = desc::PositionKind::Rotary;
  // Keys of some checkpoints that transformers itself ignores.
  if (kind == Kind::Llama) {
    keys.passOver({"is_llama_config", "max_sequence_length"});
    keys.expectFlag("rope_interleaved", false, "halves of a head are rotated, not neighbours");
  }
  if (kind == Kind::Qwen2) {
    keys.expectFlag("use_mrope", false, "positions are numbers, not triples");
  }
  readRotary();
  readBiases();
  model.queryKeyNorm = kind == Kind::Qwen3 || kind == Kind::Qwen3Moe;
  if (kind == Kind::Mixtral || kind == Kind::Qwen3Moe) {
    readExperts(keys, kind, model);
  } else if (kind == Kind::DeepseekV3) {
    readDeepseekExperts(keys, model);
  }
  readWindow();
  model.attentionDropout = keys.real("attention_dropout", 0.0);
  model.tiedEmbeddings = keys.flag("tie_word_embeddings", false);
  model.initialization.scaleResidualProjections = false;
}

void LlamaReader::readSizes() {
  model.layers = keys.count("num_hidden_layers");
  model.hidden = keys.count("hidden_size");
  model.heads = keys.count("num_attention_heads");
  // Without the key, transformers takes the number of heads in Llama, and a fixed number in the
  // others.
  model.kvHeads = kind == Kind::Llama ? keys.count("num_key_value_heads", model.heads)
                                      : keys.count("num_key_value_heads");
  model.ffn = keys.count("intermediate_size");
  model.maximumLength = keys.count("max_position_embeddings");
  if (kind == Kind::DeepseekV3) {
    readLatentAttention(keys, config);
    return;
  }
  if (kind == Kind::Qwen3 || keys.has("head_dim")) {
    model.headSize = keys.count("head_dim");
    return;
  }
  keys.passOver({"head_dim"});
  if (model.hidden % model.heads != 0) {
    keys.refuse("hidden_size", "expected a multiple of num_attention_heads " +
                                   llvm::Twine(model.heads) + " without head_dim, got " +
                                   llvm::Twine(model.hidden));
  }
  model.headSize = model.hidden / model.heads;
}

void LlamaReader::readBiases() {
  switch (kind) {
  case Kind::Llama:
    model.mlpBiases = keys.flag("mlp_bias", false);
    [[fallthrough]];
  case Kind::Qwen3:
  case Kind::Qwen3Moe:
    model.attentionBiases = model.attentionOutputBias = keys.flag("attention_bias", false);
    return;
  case Kind::Qwen2:
    model.attentionBiases = true;
    return;
  case Kind::DeepseekV3:
    keys.expectFlag("attention_bias", false, "projections to latent vectors have no bias");
    return;
  case Kind::Mistral:
  case Kind::Mixtral:
  case Kind::Gpt2:
    return;
  }
}

void LlamaReader::readRotary() {
  double theta = keys.real("rope_theta", kind == Kind::Mixtral ? 1e6 : 10000.0);
  // rope_scaling was joined with rope_theta under a new name in transformers 5.
  const llvm::json::Object *old = keys.nested("rope_scaling");
  const llvm::json::Object *joined = keys.nested("rope_parameters");
  if (old && joined) {
    keys.refuse("rope_parameters", "expected rope_scaling or rope_parameters, got both");
    return;
  }
  model.rotary.theta = theta;
  if (const llvm::json::Object *object = old ? old : joined) {
    Keys scaling = keys.inside(old ? "rope_scaling" : "rope_parameters", *object);
    model.rotary.theta = scaling.real("rope_theta", theta);
    if (double part = scaling.real("partial_rotary_factor", 1.0); part != 1.0) {
      scaling.refuse("partial_rotary_factor", "expected 1, got " + rt::concat(part) +
                                                  ": all elements of a head are rotated");
    }
    // The former name of rope_type.
    readRotaryScaling(scaling, scaling.has("rope_type") ? "rope_type" : "type");
    scaling.passOver({"type"});
    scaling.refuseOthers();
  }
}

void LlamaReader::readRotaryScaling(Keys &scaling, StringRef typeKey) {
  std::string type = scaling.word(typeKey, StringRef("default"));
  if (type == "default") {
    return;
  }
  if (type == "linear") {
    model.rotary.scaling = desc::RotaryScaling::Linear;
    model.rotary.factor = scaling.real("factor");
    return;
  }
  if (type == "llama3") {
    model.rotary.scaling = desc::RotaryScaling::Llama3;
    model.rotary.factor = scaling.real("factor");
    model.rotary.lowFrequencyFactor = scaling.real("low_freq_factor");
    model.rotary.highFrequencyFactor = scaling.real("high_freq_factor");
    model.rotary.originalMaximumLength = scaling.count("original_max_position_embeddings");
    return;
  }
  if (type == "yarn") {
    readYarn(scaling);
    return;
  }
  scaling.refuse(typeKey,
                 "expected one of default, linear, llama3, yarn, got '" + readable(type) + "'");
}

void LlamaReader::readYarn(Keys &scaling) {
  desc::RotarySpec &rotary = model.rotary;
  rotary.scaling = desc::RotaryScaling::Yarn;
  rotary.factor = scaling.real("factor");
  rotary.originalMaximumLength = scaling.count("original_max_position_embeddings");
  rotary.fastTurns = scaling.real("beta_fast", 32.0);
  rotary.slowTurns = scaling.real("beta_slow", 1.0);
  rotary.wholePairs = scaling.flag("truncate", true);
  auto scaleOf = [&](double weight) {
    return rotary.factor <= 1.0 ? 1.0 : 0.1 * weight * std::log(rotary.factor) + 1.0;
  };
  double some = scaling.real("mscale", 0.0), all = scaling.real("mscale_all_dim", 0.0);
  double usual = some != 0.0 && all != 0.0 ? scaleOf(some) / scaleOf(all) : scaleOf(1.0);
  rotary.rotatedScale = scaling.real("attention_factor", usual);
  // Transformers reads it for scores in DeepSeek only.
  if (kind == Kind::DeepseekV3 && all != 0.0) {
    rotary.scoreScale = scaleOf(all) * scaleOf(all);
  }
}

void LlamaReader::readWindow() {
  if (kind == Kind::Mistral || kind == Kind::Mixtral) {
    // Null means that there is no window; without the key, transformers takes 4096 in Mistral.
    bool isGiven = keys.has("sliding_window");
    int64_t window = keys.count("sliding_window", 4096);
    bool isUnlimited = keys.isNull("sliding_window") || (kind == Kind::Mixtral && !isGiven);
    model.attentionWindow = isUnlimited ? 0 : window;
    return;
  }
  if (kind == Kind::Llama || kind == Kind::DeepseekV3) {
    return;
  }
  bool slides = keys.flag("use_sliding_window", false) && !keys.isNull("sliding_window");
  int64_t window = keys.count("sliding_window", 4096);
  if (kind == Kind::Qwen3Moe) {
    // There it holds for all layers or none.
    keys.passOver({"max_window_layers"});
    model.attentionWindow = slides ? window : 0;
    return;
  }
  bool inAllLayers = slidesInAllLayers(slides);
  if (inAllLayers && !slides) {
    keys.refuse("use_sliding_window", "expected true and a sliding_window, as layer_types has "
                                      "sliding_attention");
  }
  model.attentionWindow = slides && inAllLayers ? window : 0;
}

bool LlamaReader::slidesInAllLayers(bool slides) {
  int64_t first = keys.index("max_window_layers", 28);
  if (const llvm::json::Array *types = keys.array("layer_types")) {
    return slidesByTypes(*types);
  }
  if (slides && first > 0 && first < model.layers) {
    keys.refuse("max_window_layers", "expected 0 or at least num_hidden_layers " +
                                         llvm::Twine(model.layers) + ", got " + llvm::Twine(first) +
                                         ": all layers have the same window, or none");
  }
  return slides && first == 0;
}

bool LlamaReader::slidesByTypes(const llvm::json::Array &types) {
  int64_t sliding = llvm::count(types, llvm::json::Value("sliding_attention"));
  int64_t full = llvm::count(types, llvm::json::Value("full_attention"));
  if (static_cast<int64_t>(types.size()) != model.layers) {
    keys.refuse("layer_types", "expected a type for each of " + llvm::Twine(model.layers) +
                                   " layers, got " + llvm::Twine(types.size()));
  } else if (sliding != model.layers && full != model.layers) {
    keys.refuse("layer_types", "expected full_attention in all layers, or sliding_attention in "
                               "all, got " +
                                   llvm::Twine(full) + " and " + llvm::Twine(sliding) + " of " +
                                   llvm::Twine(model.layers));
  }
  return sliding > 0;
}

} // namespace

void weft::hf::readLlama(Keys &keys, Config &config) { LlamaReader(keys, config).read(); }
