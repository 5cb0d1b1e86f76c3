//===- Gpt2Config.cpp - GPT-2's keys of config.json -----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ConfigReaders.h"

#include "support/Text.h"

using namespace weft;
using namespace weft::hf;
using llvm::StringRef;

/// Keys without effect on training: heads of other tasks, and n_ctx, the former name of
/// n_positions.
static constexpr llvm::StringLiteral kHarmless[] = {
    "n_ctx",        "summary_activation", "summary_first_dropout", "summary_proj_to_labels",
    "summary_type", "summary_use_proj"};

/// The activation of the MLP.
static desc::ActivationKind readActivation(Keys &keys) {
  std::string name = keys.word("activation_function", StringRef("gelu_new"));
  if (name == "gelu") {
    return desc::ActivationKind::Gelu;
  }
  if (name == "gelu_new" || name == "gelu_pytorch_tanh") {
    return desc::ActivationKind::GeluTanh;
  }
  keys.refuse("activation_function",
              "expected one of gelu, gelu_new, gelu_pytorch_tanh, got '" + readable(name) + "'");
  return desc::ActivationKind::Gelu;
}

void weft::hf::readGpt2(Keys &keys, desc::ModelSpec &model) {
  keys.passOver(kHarmless);
  model.layers = keys.count("n_layer");
  model.hidden = keys.count("n_embd");
  model.heads = model.kvHeads = keys.count("n_head");
  model.ffn = keys.count("n_inner", 4 * model.hidden);
  model.maximumLength = keys.count("n_positions");
  if (model.hidden % model.heads != 0) {
    keys.refuse("n_embd", "expected a multiple of n_head " + llvm::Twine(model.heads) + ", got " +
                              llvm::Twine(model.hidden));
  }
  model.headSize = model.hidden / model.heads;
  model.norm = desc::NormKind::LayerNorm;
  model.normEpsilon = keys.real("layer_norm_epsilon", 1e-5);
  model.positions = desc::PositionKind::Learned;
  model.attentionBiases = model.attentionOutputBias = model.mlpBiases = true;
  model.tiedEmbeddings = keys.flag("tie_word_embeddings", true);
  model.activation = readActivation(keys);
  model.dropout = keys.real("resid_pdrop", 0.1);
  model.attentionDropout = keys.real("attn_pdrop", 0.1);
  if (double embedding = keys.real("embd_pdrop", 0.1); !(embedding == model.dropout)) {
    keys.refuse("embd_pdrop",
                rt::concat("expected the value of resid_pdrop, ", model.dropout, ", got ",
                           embedding,
                           ": one probability of dropout holds for the embedding and the residual "
                           "stream"));
  }
  keys.expectFlag("scale_attn_weights", true,
                  "attention always divides by the root of the head size");
  keys.expectFlag("scale_attn_by_inverse_layer_idx", false,
                  "attention is scaled alike in all layers");
  keys.expectFlag("reorder_and_upcast_attn", false, "attention has the precision of the recipe");
}
