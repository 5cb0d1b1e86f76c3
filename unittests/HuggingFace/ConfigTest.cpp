//===- ConfigTest.cpp - tests of config.json ------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Configs.h"

#include <cmath>

using namespace weft;
using namespace weft::hf;
using namespace weft::hf::test;

/// The model of a config that must be accepted.
static desc::ModelSpec read(const std::string &text) {
  desc::Result<Config> config = parseConfig(text, "c", "n");
  EXPECT_TRUE(bool(config)) << desc::str(config.diagnostics());
  return config ? config->model : desc::ModelSpec();
}

static std::string errors(const std::string &text) {
  return desc::str(parseConfig(text, "c", "n").diagnostics());
}

static std::string gpt2Errors(const std::string &from, const std::string &to) {
  return errors(with(gpt2Text, from, to));
}

static desc::ModelSpec gpt2Plus(const std::string &keys) {
  return read(with(gpt2Text, "\"n_layer\"", keys + ", \"n_layer\""));
}

static std::string gpt2PlusErrors(const std::string &keys) {
  return gpt2Errors("\"n_layer\"", keys + ", \"n_layer\"");
}

TEST(Config, Gpt2WithDefaults) {
  EXPECT_EQ(desc::printModel(read(gpt2Text)), R"(version: 1
name: "n"
layers: 2
hidden: 32
heads: 4
ffn: 128
norm: LAYER_NORM
activation: GELU_TANH
positions: LEARNED
attention_biases: true
mlp_biases: true
dropout: 0.1
attention_dropout: 0.1
tied_embeddings: true
vocabulary: 300
maximum_length: 64
)");
}

TEST(Config, Gpt2Keys) {
  desc::ModelSpec model =
      gpt2Plus(R"("n_inner": 100, "activation_function": "gelu", "resid_pdrop": 0, "embd_pdrop": 0,
    "attn_pdrop": 0.5, "layer_norm_epsilon": 0.001, "initializer_range": 0.3,
    "tie_word_embeddings": false, "n_ctx": 1, "summary_type": "x")");
  EXPECT_EQ(model.ffn, 100);
  EXPECT_EQ(model.activation, desc::ActivationKind::Gelu);
  EXPECT_EQ(model.dropout, 0);
  EXPECT_EQ(model.attentionDropout, 0.5);
  EXPECT_EQ(model.normEpsilon, 0.001);
  EXPECT_EQ(model.initialization.standardDeviation, 0.3);
  EXPECT_TRUE(model.initialization.scaleResidualProjections);
  EXPECT_FALSE(model.tiedEmbeddings);
}

TEST(Config, LlamaWithDefaults) {
  EXPECT_EQ(desc::printModel(read(llamaText("llama"))), R"(version: 1
name: "n"
layers: 2
hidden: 32
heads: 4
kv_heads: 2
ffn: 48
norm: RMS_NORM
norm_epsilon: 1e-06
activation: SWIGLU
positions: ROTARY
vocabulary: 300
maximum_length: 64
initialization {
  scale_residual_projections: false
}
)");
}

TEST(Config, LlamaKeys) {
  desc::ModelSpec model = read(llamaText("llama", R"(, "head_dim": 16, "rms_norm_eps": 0.01,
    "rope_theta": 500000.0, "attention_bias": true, "mlp_bias": true, "attention_dropout": 0.25,
    "tie_word_embeddings": true, "pretraining_tp": 1, "initializer_range": 0.5)"));
  EXPECT_EQ(model.headSize, 16);
  EXPECT_EQ(model.normEpsilon, 0.01);
  EXPECT_EQ(model.rotary.theta, 500000);
  EXPECT_TRUE(model.attentionBiases && model.attentionOutputBias && model.mlpBiases);
  EXPECT_EQ(model.attentionDropout, 0.25);
  EXPECT_TRUE(model.tiedEmbeddings);
  EXPECT_EQ(model.initialization.standardDeviation, 0.5);
  // Without the key, each head has a key head of its own.
  std::string text = with(llamaText("llama"), "\"num_key_value_heads\": 2,", "");
  EXPECT_EQ(read(text).kvHeads, 4);
}

TEST(Config, RotaryScaling) {
  std::string linear = R"({"type": "linear", "factor": 2})";
  for (const char *key : {"rope_scaling", "rope_parameters"}) {
    desc::ModelSpec model = read(llamaText("llama", ", \"" + std::string(key) + "\": " + linear));
    EXPECT_EQ(model.rotary.scaling, desc::RotaryScaling::Linear);
    EXPECT_EQ(model.rotary.factor, 2);
  }
  desc::RotarySpec rotary = read(llamaText("llama", R"(, "rope_parameters": {"rope_type": "llama3",
    "rope_theta": 7.5, "factor": 8, "low_freq_factor": 2, "high_freq_factor": 5,
    "original_max_position_embeddings": 32, "partial_rotary_factor": 1.0})"))
                                .rotary;
  EXPECT_EQ(rotary.scaling, desc::RotaryScaling::Llama3);
  EXPECT_EQ(rotary.theta, 7.5);
  EXPECT_EQ(rotary.factor, 8);
  EXPECT_EQ(rotary.lowFrequencyFactor, 2);
  EXPECT_EQ(rotary.highFrequencyFactor, 5);
  EXPECT_EQ(rotary.originalMaximumLength, 32);
  EXPECT_EQ(read(llamaText("llama", R"(, "rope_scaling": {"rope_type": "default"})")).rotary.factor,
            1);
}

TEST(Config, RotaryRefusals) {
  auto scaled = [](const std::string &value) {
    return errors(llamaText("llama", ", \"rope_scaling\": " + value));
  };
  EXPECT_EQ(
      scaled(R"({"rope_type": "dynamic", "factor": 2})"),
      "c: rope_scaling.rope_type: expected one of default, linear, llama3, yarn, got 'dynamic'\n"
      "c: rope_scaling.factor: unknown key, which may change what the model computes\n");
  EXPECT_EQ(scaled(R"({"type": "linear"})"), "c: rope_scaling.factor: missing\n");
  EXPECT_EQ(scaled(R"({"type": "linear", "factor": 0.5})"),
            "c: rope_scaling.factor: expected a number from 1 to 1e+06, got 0.5\n");
  EXPECT_EQ(scaled("[1]"), "c: rope_scaling: expected an object, got [1]\n");
  EXPECT_EQ(scaled(R"({"partial_rotary_factor": 0.5})"),
            "c: rope_scaling.partial_rotary_factor: expected 1, got 0.5: all elements of a "
            "head are rotated\n");
  EXPECT_EQ(scaled(R"({}, "rope_parameters": {})"),
            "c: rope_parameters: expected rope_scaling or rope_parameters, got both\n");
}

TEST(Config, MistralWindow) {
  EXPECT_EQ(read(llamaText("mistral", ", \"sliding_window\": 7")).attentionWindow, 7);
  EXPECT_EQ(read(llamaText("mistral", ", \"sliding_window\": null")).attentionWindow, 0);
  EXPECT_EQ(read(llamaText("mistral")).attentionWindow, 4096);
}

TEST(Config, QwenWindow) {
  auto window = [](const std::string &more) {
    return read(llamaText("qwen2", more)).attentionWindow;
  };
  EXPECT_EQ(window(R"(, "sliding_window": 7, "max_window_layers": 0)"), 0);
  std::string slides = R"(, "use_sliding_window": true)";
  EXPECT_EQ(window(slides + R"(, "sliding_window": 7, "max_window_layers": 0)"), 7);
  EXPECT_EQ(window(slides + R"(, "sliding_window": 7, "max_window_layers": 2)"), 0);
  EXPECT_EQ(window(slides + R"(, "sliding_window": null, "max_window_layers": 0)"), 0);
  EXPECT_EQ(window(slides + R"(, "sliding_window": 9,
                   "layer_types": ["sliding_attention", "sliding_attention"])"),
            9);
  EXPECT_EQ(window(R"(, "layer_types": ["full_attention", "full_attention"])"), 0);
}

TEST(Config, QwenWindowRefusals) {
  auto refused = [](const std::string &more) {
    return errors(llamaText("qwen3", R"(, "head_dim": 8)" + more));
  };
  EXPECT_EQ(refused(R"(, "use_sliding_window": true, "sliding_window": 7, "max_window_layers": 1)"),
            "c: max_window_layers: expected 0 or at least num_hidden_layers 2, got 1: all layers "
            "have the same window, or none\n");
  EXPECT_EQ(refused(R"(, "layer_types": ["full_attention"])"),
            "c: layer_types: expected a type for each of 2 layers, got 1\n");
  EXPECT_EQ(refused(R"(, "layer_types": ["full_attention", "chunked_attention"])"),
            "c: layer_types: expected full_attention in all layers, or sliding_attention in all, "
            "got 1 and 0 of 2\n");
  EXPECT_EQ(refused(R"(, "layer_types": ["sliding_attention", "sliding_attention"])"),
            "c: use_sliding_window: expected true and a sliding_window, as layer_types has "
            "sliding_attention\n");
}

TEST(Config, ExpertsOfMixtral) {
  std::string keys = R"(, "num_local_experts": 8, "num_experts_per_tok": 2)";
  desc::ModelSpec model = read(llamaText("mixtral", keys));
  ASSERT_TRUE(model.experts.has_value());
  EXPECT_EQ(model.experts->count, 8);
  EXPECT_EQ(model.experts->perToken, 2);
  EXPECT_EQ(model.experts->ffn, model.ffn);
  EXPECT_TRUE(model.experts->normalizes);
  EXPECT_EQ(model.expertLayers(), model.layers);
  EXPECT_EQ(model.attentionWindow, 0);
  EXPECT_EQ(model.rotary.theta, 1e6);
  EXPECT_EQ(read(llamaText("mixtral", keys + R"(, "sliding_window": 7)")).attentionWindow, 7);
  EXPECT_EQ(errors(llamaText("mixtral", keys + R"(, "router_jitter_noise": 0.1)")),
            "c: router_jitter_noise: expected 0: noise on the input of routers is not supported\n");
  EXPECT_EQ(errors(llamaText("mixtral", R"(, "num_local_experts": 8, "num_experts_per_tok": 9)")),
            "c: num_experts_per_tok: expected at most 8, the experts, got 9\n");
  EXPECT_EQ(errors(llamaText("mixtral")), "c: num_local_experts: missing\n"
                                          "c: num_experts_per_tok: missing\n");
}

TEST(Config, DeepseekV3) {
  std::string keys = R"(, "num_key_value_heads": 4, "kv_lora_rank": 16, "q_lora_rank": 20,
    "qk_rope_head_dim": 8, "qk_nope_head_dim": 12, "v_head_dim": 10, "n_routed_experts": 8,
    "num_experts_per_tok": 3, "moe_intermediate_size": 24, "n_shared_experts": 2, "n_group": 4,
    "topk_group": 2, "first_k_dense_replace": 1, "rope_parameters": {"rope_type": "yarn",
    "factor": 4, "original_max_position_embeddings": 32, "mscale": 1, "mscale_all_dim": 0.5})";
  auto text = [&](const std::string &more) {
    return with(llamaText("deepseek_v3", keys + more), R"("num_key_value_heads": 2, )", "");
  };
  desc::ModelSpec model = read(text(""));
  ASSERT_TRUE(model.latent && model.experts);
  EXPECT_EQ(*model.latent, (desc::LatentSpec{16, 20, 8, 10}));
  EXPECT_EQ(model.headSize, 20);
  EXPECT_EQ(model.experts->sharedFfn, 48);
  EXPECT_EQ(model.experts->groups, 4);
  EXPECT_EQ(model.experts->keptGroups, 2);
  EXPECT_EQ(model.experts->scale, 2.5);
  EXPECT_TRUE(model.experts->selectionBias && !model.hasExperts(0) && model.hasExperts(1));
  double half = 0.05 * std::log(4) + 1;
  EXPECT_DOUBLE_EQ(model.rotary.rotatedScale, (0.1 * std::log(4) + 1) / half);
  EXPECT_DOUBLE_EQ(model.rotary.scoreScale, half * half);
  EXPECT_EQ(errors(text(R"(, "rms_norm_eps": 1e-5)")),
            "c: rms_norm_eps: expected 1e-6, which the norms of latent vectors have in any case\n");
  EXPECT_EQ(errors(text(R"(, "scoring_func": "softmax", "moe_layer_freq": 2)")),
            "c: scoring_func: expected sigmoid, got 'softmax'\n"
            "c: moe_layer_freq: expected 1, got 2\n");
  EXPECT_EQ(errors(with(text(""), R"("n_group": 4)", R"("n_group": 3)")),
            "c: n_group: expected a divisor of experts 8 that leaves at least 2 in a group, got "
            "3\n");
}

TEST(Config, ExpertsOfQwen3) {
  std::string keys = R"(, "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 12)";
  desc::ModelSpec model = read(llamaText("qwen3_moe", keys + R"(, "norm_topk_prob": true)"));
  ASSERT_TRUE(model.experts.has_value());
  EXPECT_EQ(model.experts->count, 8);
  EXPECT_EQ(model.experts->ffn, 12);
  EXPECT_TRUE(model.experts->normalizes && model.queryKeyNorm);
  EXPECT_EQ(model.expertLayers(), model.layers);
  EXPECT_FALSE(read(llamaText("qwen3_moe", keys)).experts->normalizes);
  desc::ModelSpec sparse = read(llamaText("qwen3_moe", keys + R"(, "decoder_sparse_step": 2)"));
  EXPECT_TRUE(!sparse.hasExperts(0) && sparse.hasExperts(1));
  desc::ModelSpec dense = read(llamaText("qwen3_moe", keys + R"(, "mlp_only_layers": [0])"));
  EXPECT_TRUE(!dense.hasExperts(0) && dense.hasExperts(1));
  EXPECT_EQ(errors(llamaText("qwen3_moe", keys + R"(, "mlp_only_layers": [1])")),
            "c: mlp_only_layers: expected 0, 1, 2, ...: only the first layers may be without "
            "experts\n");
  EXPECT_EQ(read(llamaText("qwen3_moe", keys + R"(, "use_sliding_window": true,
                           "sliding_window": 7, "max_window_layers": 1)"))
                .attentionWindow,
            7);
}

TEST(Config, WhatQwenAddsToLlama) {
  desc::ModelSpec second = read(llamaText("qwen2"));
  EXPECT_TRUE(second.attentionBiases && !second.attentionOutputBias && !second.queryKeyNorm);
  desc::ModelSpec third = read(llamaText("qwen3", R"(, "head_dim": 16, "attention_bias": true)"));
  EXPECT_TRUE(third.attentionBiases && third.attentionOutputBias && third.queryKeyNorm);
  // Its default is a number that has nothing to do with the others.
  EXPECT_EQ(errors(llamaText("qwen3")), "c: head_dim: missing\n");
}

TEST(Config, ValuesThatChangeTheMathematics) {
  EXPECT_EQ(gpt2PlusErrors(R"("activation_function": "relu")"),
            "c: activation_function: expected one of gelu, gelu_new, gelu_pytorch_tanh, got "
            "'relu'\n");
  EXPECT_EQ(gpt2PlusErrors(R"("embd_pdrop": 0.2)"),
            "c: embd_pdrop: expected the value of resid_pdrop, 0.1, got 0.2: one probability of "
            "dropout holds for the embedding and the residual stream\n");
  EXPECT_EQ(gpt2PlusErrors(R"("scale_attn_weights": false)"),
            "c: scale_attn_weights: expected true, got false: attention always divides by the root "
            "of the "
            "head size\n");
  EXPECT_EQ(
      gpt2PlusErrors(R"("scale_attn_by_inverse_layer_idx": true)"),
      "c: scale_attn_by_inverse_layer_idx: expected false, got true: attention is scaled alike "
      "in all layers\n");
  EXPECT_EQ(gpt2PlusErrors(R"("reorder_and_upcast_attn": true)"),
            "c: reorder_and_upcast_attn: expected false, got true: attention has the precision "
            "of the recipe\n");
  EXPECT_EQ(gpt2PlusErrors(R"("add_cross_attention": true)"),
            "c: add_cross_attention: expected false, got true: only decoders are supported\n");
  EXPECT_EQ(gpt2PlusErrors(R"("is_encoder_decoder": true)"),
            "c: is_encoder_decoder: expected false, got true: only decoders are supported\n");
  EXPECT_EQ(gpt2PlusErrors(R"("pruned_heads": {"0": [1]})"),
            "c: pruned_heads: expected no pruned heads\n");
  EXPECT_EQ(gpt2PlusErrors(R"("quantization_config": {}, "auto_map": {})"),
            "c: quantization_config: quantized weights are not supported\n"
            "c: auto_map: models with code of their own are not supported\n");
  EXPECT_EQ(errors(llamaText("llama", R"(, "hidden_act": "gelu")")),
            "c: hidden_act: expected silu: the MLP is down(silu(gate(x)) * up(x)), got 'gelu'\n");
}

TEST(Config, KeysOfParticularCheckpoints) {
  read(llamaText("llama", R"(, "is_llama_config": true, "rope_interleaved": false,
    "max_sequence_length": 2048, "transformers.js_config": {"dtype": "q4"})"));
  read(llamaText("qwen2", R"(, "use_mrope": false)"));
  gpt2Plus(R"("_num_labels": 1, "output_past": true)");
  EXPECT_EQ(errors(llamaText("llama", R"(, "rope_interleaved": true)")),
            "c: rope_interleaved: expected false, got true: halves of a head are rotated, not "
            "neighbours\n");
  EXPECT_EQ(errors(llamaText("qwen2", R"(, "use_mrope": true)")),
            "c: use_mrope: expected false, got true: positions are numbers, not triples\n");
}

TEST(Config, UnknownKeysAreRefusedByName) {
  EXPECT_EQ(gpt2PlusErrors(R"("zzz": null, "attn_logit_softcapping": 5)"),
            "c: attn_logit_softcapping: unknown key, which may change what the model computes\n"
            "c: zzz: unknown key, which may change what the model computes\n");
  // Known of one kind, and not of another.
  EXPECT_NE(errors(llamaText("llama", R"(, "sliding_window": 4096)")), "");
  EXPECT_NE(errors(llamaText("mistral", R"(, "mlp_bias": true)")), "");
  EXPECT_EQ(gpt2PlusErrors("\"" + std::string(1000, 'k') + "\": 1"),
            "c: " + std::string(100, 'k') +
                "...: unknown key, which may change what the model computes\n");
}

TEST(Config, TypesAndRanges) {
  EXPECT_EQ(gpt2Errors("\"n_layer\": 2", "\"n_layer\": \"two\""),
            "c: n_layer: expected a number from 1 to 2147483647, got \"two\"\n");
  EXPECT_EQ(gpt2Errors("\"n_layer\": 2", "\"n_layer\": 1.5"),
            "c: n_layer: expected a number from 1 to 2147483647, got 1.5\n");
  EXPECT_EQ(gpt2Errors("\"n_layer\": 2", "\"n_layer\": null"), "c: n_layer: missing\n");
  EXPECT_EQ(gpt2Errors("\"n_layer\": 2", "\"n_layer\": 5000"),
            "c: n_layer: expected a number from 1 to 1024, got 5000\n");
  EXPECT_EQ(gpt2Errors("\"n_embd\": 32", "\"n_embd\": 30"),
            "c: n_embd: expected a multiple of n_head 4, got 30\n");
  EXPECT_EQ(gpt2PlusErrors(R"("resid_pdrop": "0.1")"),
            "c: resid_pdrop: expected a number, got \"0.1\"\n");
  EXPECT_EQ(gpt2PlusErrors(R"("resid_pdrop": 1.5, "embd_pdrop": 1.5)"),
            "c: resid_pdrop: expected a number from 0 to below 1, got 1.5\n");
  EXPECT_EQ(gpt2PlusErrors(R"("tie_word_embeddings": 1)"),
            "c: tie_word_embeddings: expected true or false, got 1\n");
  EXPECT_EQ(gpt2PlusErrors(R"("activation_function": 1)"),
            "c: activation_function: expected a text, got 1\n");
  EXPECT_EQ(errors(llamaText("qwen2", R"(, "layer_types": 1)")),
            "c: layer_types: expected an array, got 1\n");
  EXPECT_EQ(
      errors(with(llamaText("llama"), "\"num_key_value_heads\": 2", "\"num_key_value_heads\": 3")),
      "c: num_attention_heads: expected a multiple of kv_heads 3, got 4\n");
  EXPECT_EQ(errors(with(llamaText("llama"), "\"hidden_size\": 32", "\"hidden_size\": 33")),
            "c: hidden_size: expected a multiple of num_attention_heads 4 without head_dim, got "
            "33\n");
  // Products of sizes stay far below 2^63 while nothing has been refused yet.
  EXPECT_NE(errors(llamaText("llama", R"(, "head_dim": 2147483647)")), "");
}

TEST(Config, ModelType) {
  EXPECT_EQ(
      gpt2Errors("\"gpt2\"", "\"bert\""),
      "c: model_type: expected one of gpt2, llama, mistral, qwen2, qwen3, mixtral, qwen3_moe, "
      "deepseek_v3, got "
      "'bert'\n");
  EXPECT_EQ(errors("{}"), "c: model_type: missing\n");
  EXPECT_EQ(errors(R"({"model_type": 3})"), "c: model_type: expected a text, got 3\n");
}

TEST(Config, WhatIsNoJson) {
  EXPECT_EQ(errors("{\n  \"a\": 1,\n  b\n}"), "c:3:3: expected object key\n");
  EXPECT_EQ(errors("[1, 2]"), "c: expected an object, got [1,2]\n");
  EXPECT_NE(errors(""), "");
  EXPECT_NE(errors("{\"a\": \"\xff\"}"), "");
  EXPECT_EQ(errors("{\"a\": " + std::string(100000, '[')),
            "c: expected at most 32 levels of braces and brackets\n");
  // Brackets in texts do not count.
  EXPECT_EQ(
      errors("{\"model_type\": \"\\\"" + std::string(40, '[') + "\"}"),
      "c: model_type: expected one of gpt2, llama, mistral, qwen2, qwen3, mixtral, qwen3_moe, "
      "deepseek_v3, got "
      "'\"" +
          std::string(40, '[') + "'\n");
}

TEST(Config, NamesAreMadeToFit) {
  EXPECT_EQ(parseConfig(gpt2Text, "c", "My model/v1")->model.name, "My-model-v1");
  EXPECT_EQ(parseConfig(gpt2Text, "c", "")->model.name, "gpt2");
  EXPECT_EQ(parseConfig(gpt2Text, "c", std::string(99, 'a'))->model.name.size(), 64u);
}
