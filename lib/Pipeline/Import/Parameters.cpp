//===- Parameters.cpp - the parameters of a model -------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Pipeline/Import/Parameters.h"

#include "weft/Description/Validate.h"

#include <cmath>

using namespace weft;

namespace {

/// Collects parameters in the order in which they are added.
class ParameterList {
public:
  explicit ParameterList(const desc::ModelSpec &model) : model(model) {}

  void addWeight(llvm::StringRef name, std::initializer_list<llvm::StringRef> dimensions,
                 ParameterKind kind = ParameterKind::Weight) {
    parameters.push_back({name.str() + ".weight", dimensions, kind, model.ffn});
  }

  /// Adds a projection of a layer whose outputs have this number of dimensions.
  void addMatrix(llvm::StringRef name, std::initializer_list<llvm::StringRef> dimensions,
                 int64_t rows, ParameterKind kind = ParameterKind::Weight) {
    addWeight(name, dimensions, kind);
    parameters.back().rows = rows;
  }

  void addBias(llvm::StringRef name, std::initializer_list<llvm::StringRef> dimensions) {
    parameters.push_back({name.str() + ".bias", dimensions, ParameterKind::Bias, model.ffn});
  }

  void addNorm(llvm::StringRef name) {
    addWeight(name, {"hidden"}, ParameterKind::NormScale);
    if (model.normBias) {
      addBias(name, {"hidden"});
    }
  }

  void addAttention() {
    if (model.latent) {
      addLatentAttention();
      return;
    }
    addMatrix("attention.query", {"kv_heads", "group", "head", "hidden"}, 3);
    addAttentionBias("attention.query", {"kv_heads", "group", "head"});
    for (llvm::StringRef name : {"attention.key", "attention.value"}) {
      addMatrix(name, {"kv_heads", "head", "hidden"}, 2);
      addAttentionBias(name, {"kv_heads", "head"});
    }
    if (model.queryKeyNorm) {
      for (llvm::StringRef name : {"attention.query_norm", "attention.key_norm"}) {
        addWeight(name, {"head"}, ParameterKind::NormScale);
      }
    }
    addMatrix("attention.output", {"hidden", "kv_heads", "group", "head"}, 1,
              ParameterKind::ResidualWeight);
    if (model.attentionOutputBias) {
      addBias("attention.output", {"hidden"});
    }
  }

  void addLatentAttention() {
    llvm::StringRef source = "hidden";
    if (model.latent->queryRank > 0) {
      source = "query_latent";
      addMatrix("attention.query_latent", {source, "hidden"}, 1);
      addWeight("attention.query_latent_norm", {source}, ParameterKind::NormScale);
    }
    addMatrix("attention.query", {"kv_heads", "group", "head", source}, 3);
    addMatrix("attention.latent", {"latent", "hidden"}, 1);
    addWeight("attention.latent_norm", {"latent"}, ParameterKind::NormScale);
    addMatrix("attention.key_rotary", {"rotary", "hidden"}, 1);
    addMatrix("attention.key", {"kv_heads", "plain", "latent"}, 2);
    addMatrix("attention.value", {"kv_heads", "value", "latent"}, 2);
    addMatrix("attention.output", {"hidden", "kv_heads", "group", "value"}, 1,
              ParameterKind::ResidualWeight);
  }

  void addMlp() {
    addMatrix("mlp.up", {"ffn", "hidden"}, 1);
    addMlpBias("mlp.up", {"ffn"});
    if (model.hasGate()) {
      addMatrix("mlp.gate", {"ffn", "hidden"}, 1);
      addMlpBias("mlp.gate", {"ffn"});
    }
    addMatrix("mlp.down", {"hidden", "ffn"}, 1, ParameterKind::ResidualWeight);
    addMlpBias("mlp.down", {"hidden"});
  }

  void addExperts() {
    const desc::ExpertsSpec &experts = *model.experts;
    addMatrix("router", {"experts", "hidden"}, 1, ParameterKind::Router);
    if (experts.selectionBias) {
      parameters.push_back({"router.bias", {"experts"}, ParameterKind::SelectionBias, 0});
    }
    size_t first = parameters.size();
    addMatrix("experts.up", {"experts", "ffn", "hidden"}, 1);
    if (model.hasGate()) {
      addMatrix("experts.gate", {"experts", "ffn", "hidden"}, 1);
    }
    addMatrix("experts.down", {"experts", "hidden", "ffn"}, 1, ParameterKind::ResidualWeight);
    setFfnFrom(first, experts.ffn);
    if (experts.sharedFfn > 0) {
      addShared();
    }
  }

  void append(const Parameter &parameter) { parameters.push_back(parameter); }

  llvm::SmallVector<Parameter> take() { return std::move(parameters); }

private:
  /// Adds the MLP that all tokens share.
  void addShared() {
    size_t first = parameters.size();
    addMatrix("shared.up", {"ffn", "hidden"}, 1);
    if (model.hasGate()) {
      addMatrix("shared.gate", {"ffn", "hidden"}, 1);
    }
    addMatrix("shared.down", {"hidden", "ffn"}, 1, ParameterKind::ResidualWeight);
    setFfnFrom(first, model.experts->sharedFfn);
    if (model.experts->sharedGate) {
      addWeight("shared_router", {"hidden"}, ParameterKind::Router);
    }
  }

  void setFfnFrom(size_t first, int64_t ffn) {
    for (Parameter &parameter : llvm::drop_begin(parameters, first)) {
      parameter.ffn = ffn;
    }
  }

  void addAttentionBias(llvm::StringRef name, std::initializer_list<llvm::StringRef> dimensions) {
    if (model.attentionBiases) {
      addBias(name, dimensions);
    }
  }

  void addMlpBias(llvm::StringRef name, std::initializer_list<llvm::StringRef> dimensions) {
    if (model.mlpBiases) {
      addBias(name, dimensions);
    }
  }

  const desc::ModelSpec &model;
  llvm::SmallVector<Parameter> parameters;
};

} // namespace

llvm::SmallVector<Parameter> weft::layerParameters(const desc::ModelSpec &model, bool hasExperts) {
  ParameterList list(model);
  list.addNorm("attention_norm");
  list.addAttention();
  list.addNorm("mlp_norm");
  if (hasExperts) {
    list.addExperts();
  } else {
    list.addMlp();
  }
  return list.take();
}

llvm::SmallVector<int64_t> weft::parameterShape(const desc::ModelSpec &model,
                                                const Parameter &parameter) {
  llvm::SmallVector<int64_t> shape;
  for (llvm::StringRef dimension : parameter.dimensions) {
    shape.push_back(dimension == "ffn" ? parameter.ffn
                                       : *desc::dimensionSize(model, {}, dimension));
  }
  return shape;
}

std::string weft::layerName(int64_t layer) { return "layers." + std::to_string(layer); }

llvm::SmallVector<Parameter> weft::modelParameters(const desc::ModelSpec &model) {
  ParameterList list(model);
  list.addWeight("embed.tokens", {"vocab", "hidden"});
  if (model.positions == desc::PositionKind::Learned) {
    list.addWeight("embed.positions", {"positions", "hidden"});
  }
  for (int64_t layer = 0; layer < model.layers; ++layer) {
    for (Parameter &parameter : layerParameters(model, model.hasExperts(layer))) {
      parameter.name = layerName(layer) + "." + parameter.name;
      list.append(parameter);
    }
  }
  list.addNorm("final_norm");
  if (!model.tiedEmbeddings) {
    list.addWeight("head", {"vocab", "hidden"});
  }
  return list.take();
}

double weft::initialDeviation(const desc::ModelSpec &model, const Parameter &parameter) {
  double deviation = model.initialization.standardDeviation;
  switch (parameter.kind) {
  case ParameterKind::Weight:
  case ParameterKind::Router:
    return deviation;
  case ParameterKind::ResidualWeight:
    // Each layer adds twice to the residual stream; this keeps the stream's variance at the end
    // independent of the depth.
    return model.initialization.scaleResidualProjections
               ? deviation / std::sqrt(2.0 * static_cast<double>(model.layers))
               : deviation;
  case ParameterKind::NormScale:
  case ParameterKind::Bias:
  case ParameterKind::SelectionBias:
    return 0.0;
  }
  return 0.0;
}
