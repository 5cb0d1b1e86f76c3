//===- ModelTest.cpp - rules and defaults of models -----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Description/Model.h"

#include "Helpers.h"

#include <cmath>
#include <numbers>

using namespace weft::desc;
using namespace weft::desc::test;

static std::string modelErrors(const std::string &text) { return errors(parseModel(text, "m")); }

/// Errors of the valid model with one replacement.
static std::string changed(const std::string &from, const std::string &to) {
  return modelErrors(with(modelText, from, to));
}

/// Errors of the valid rotary model with a line added.
static std::string rotaryPlus(const std::string &line) {
  return modelErrors(rotaryModelText + line);
}

TEST(Model, DefaultsAreFilledIn) {
  Result<ModelSpec> model = parseModel(modelText);
  ASSERT_TRUE(bool(model)) << errors(model);
  EXPECT_EQ(model->headSize, 4);
  EXPECT_EQ(model->group(), 2);
  EXPECT_TRUE(model->normBias);
  EXPECT_EQ(model->normEpsilon, 1e-5);
  EXPECT_FALSE(model->attentionBiases || model->mlpBiases || model->tiedEmbeddings);
  EXPECT_EQ(model->dropout, 0.0);
  EXPECT_EQ(model->initialization.standardDeviation, 0.02);
  EXPECT_TRUE(model->initialization.scaleResidualProjections);

  Result<ModelSpec> rotary = parseModel(rotaryModelText);
  ASSERT_TRUE(bool(rotary)) << errors(rotary);
  EXPECT_EQ(rotary->kvHeads, 4);
  EXPECT_FALSE(rotary->normBias);
  EXPECT_EQ(rotary->maximumLength, 0);
  EXPECT_EQ(rotary->rotary.theta, 10000.0);
  EXPECT_EQ(rotary->rotary.factor, 1.0);
  EXPECT_EQ(rotary->positions, PositionKind::Rotary);
  EXPECT_EQ(rotary->activation, ActivationKind::SwiGlu);
}

TEST(Model, EveryFieldIsRead) {
  Result<ModelSpec> model = parseModel(R"(version: 1 name: "m" layers: 3 hidden: 32 heads: 6
    kv_heads: 3 head_size: 10 ffn: 7 norm: LAYER_NORM norm_epsilon: 0.01 norm_bias: false
    activation: GELU_TANH positions: ROTARY maximum_length: 99 vocabulary: 17
    rotary { theta: 5e5 scaling: LLAMA3 factor: 8 low_frequency_factor: 2 high_frequency_factor: 5
             original_maximum_length: 64 }
    attention_biases: true attention_output_bias: false attention_window: 12
    mlp_biases: true dropout: 0.25 attention_dropout: 0.5
    tied_embeddings: true
    initialization { standard_deviation: 0.5 scale_residual_projections: false })");
  ASSERT_TRUE(bool(model)) << errors(model);
  EXPECT_EQ(model->name, "m");
  EXPECT_EQ(model->layers, 3);
  EXPECT_EQ(model->hidden, 32);
  EXPECT_EQ(model->heads, 6);
  EXPECT_EQ(model->kvHeads, 3);
  EXPECT_EQ(model->headSize, 10);
  EXPECT_EQ(model->ffn, 7);
  EXPECT_EQ(model->norm, NormKind::LayerNorm);
  EXPECT_EQ(model->normEpsilon, 0.01);
  EXPECT_FALSE(model->normBias);
  EXPECT_EQ(model->activation, ActivationKind::GeluTanh);
  EXPECT_EQ(model->maximumLength, 99);
  EXPECT_EQ(model->vocabulary, 17);
  EXPECT_EQ(model->rotary.theta, 5e5);
  EXPECT_EQ(model->rotary.scaling, RotaryScaling::Llama3);
  EXPECT_EQ(model->rotary.factor, 8);
  EXPECT_EQ(model->rotary.lowFrequencyFactor, 2);
  EXPECT_EQ(model->rotary.highFrequencyFactor, 5);
  EXPECT_EQ(model->rotary.originalMaximumLength, 64);
  EXPECT_TRUE(model->attentionBiases && model->mlpBiases && model->tiedEmbeddings);
  EXPECT_FALSE(model->attentionOutputBias || model->queryKeyNorm);
  EXPECT_EQ(model->attentionWindow, 12);
  EXPECT_EQ(model->dropout, 0.25);
  EXPECT_EQ(model->attentionDropout, 0.5);
  EXPECT_EQ(model->initialization.standardDeviation, 0.5);
  EXPECT_FALSE(model->initialization.scaleResidualProjections);
}

TEST(Model, OutputBiasFollowsTheOthers) {
  ModelSpec biased = *parseModel(modelText + "attention_biases: true");
  EXPECT_TRUE(biased.attentionBiases && biased.attentionOutputBias);
  ModelSpec output = *parseModel(modelText + "attention_output_bias: true");
  EXPECT_TRUE(!output.attentionBiases && output.attentionOutputBias);
}

TEST(Model, PrintedTextMeansTheSame) {
  for (const std::string &text :
       {modelText, rotaryModelText, rotaryModelText + "query_key_norm: true attention_window: 7",
        rotaryModelText + R"(head_size: 10 maximum_length: 99 attention_biases: true
          attention_output_bias: false mlp_biases: true tied_embeddings: true
          rotary { theta: 5e5 scaling: LLAMA3 factor: 8.5 low_frequency_factor: 2
                   high_frequency_factor: 5 original_maximum_length: 64 })",
        rotaryModelText + "rotary { scaling: LINEAR factor: 3 } attention_output_bias: true",
        modelText + R"(norm_epsilon: 0.003 norm_bias: false dropout: 0.1 attention_dropout: 0.3
          initialization { standard_deviation: 0.5 scale_residual_projections: false })"}) {
    Result<ModelSpec> model = parseModel(text);
    ASSERT_TRUE(bool(model)) << errors(model);
    std::string printed = printModel(*model);
    Result<ModelSpec> again = parseModel(printed);
    ASSERT_TRUE(bool(again)) << printed << errors(again);
    EXPECT_TRUE(*again == *model) << printed;
    EXPECT_EQ(printModel(*again), printed);
  }
}

TEST(Model, R1Version) {
  EXPECT_EQ(changed("version: 1\n", ""),
            "model_r1: m: version: missing required field, expected 'version: 1'\n");
  // Rules of this version say nothing about another, so the missing name is not reported.
  EXPECT_EQ(modelErrors("version: 2"), "model_r1: m:1:1: version: expected 1, got 2\n");
}

TEST(Model, R2Name) {
  EXPECT_EQ(changed("name: \"m\"\n", ""), "model_r2: m: name: missing required field\n");
  EXPECT_EQ(changed("\"m\"", "\"a b\""),
            "model_r2: m:2:1: name: expected 1 to 64 letters, digits or any of '._-', got 'a b'\n");
  EXPECT_NE(changed("\"m\"", "\"\""), "");
  EXPECT_NE(changed("\"m\"", "\"" + std::string(65, 'a') + "\""), "");
}

TEST(Model, R3AllMissingFieldsAreListed) {
  EXPECT_EQ(modelErrors("version: 1 name: \"m\""),
            "model_r3: m: layers: missing required field\n"
            "model_r3: m: hidden: missing required field\n"
            "model_r3: m: heads: missing required field\n"
            "model_r3: m: ffn: missing required field\n"
            "model_r3: m: norm: missing required field\n"
            "model_r3: m: activation: missing required field\n"
            "model_r3: m: positions: missing required field\n"
            "model_r3: m: vocabulary: missing required field\n");
}

TEST(Model, R4Sizes) {
  EXPECT_EQ(changed("layers: 2", "layers: 0"),
            "model_r4: m:3:1: layers: expected a number from 1 to 1024, got 0\n");
  EXPECT_EQ(changed("ffn: 64", "ffn: -1"),
            "model_r4: m:7:1: ffn: expected a number from 1 to 1048576, got -1\n");
  EXPECT_NE(changed("hidden: 32", "hidden: 131104"), "");
  EXPECT_NE(changed("heads: 8", "heads: 0"), "");
  EXPECT_NE(changed("kv_heads: 4", "kv_heads: 0"), "");
  EXPECT_NE(changed("vocabulary: 256", "vocabulary: 1"), "");
  EXPECT_NE(changed("maximum_length: 128", "maximum_length: 1048577"), "");
  EXPECT_NE(changed("ffn: 64", "ffn: 64 head_size: 0"), "");
  EXPECT_NE(changed("ffn: 64", "ffn: 64 attention_window: 0"), "");
  EXPECT_NE(changed("ffn: 64", "ffn: 64 attention_window: 1048577"), "");
}

TEST(Model, R5HeadsAreAMultipleOfKvHeads) {
  EXPECT_EQ(modelErrors(with(with(modelText, "heads: 8", "heads: 6"), "hidden: 32", "hidden: 36")),
            "model_r5: m:5:1: heads: expected a multiple of kv_heads 4, got 6\n");
  EXPECT_NE(changed("kv_heads: 4", "kv_heads: 16"), "");
}

TEST(Model, R6HiddenIsAMultipleOfHeads) {
  EXPECT_EQ(changed("hidden: 32", "hidden: 33"),
            "model_r6: m:4:1: hidden: expected a multiple of heads 8 where head_size is not given, "
            "got 33\n");
  EXPECT_EQ(changed("hidden: 32", "hidden: 33 head_size: 4"), "");
  EXPECT_EQ(
      modelErrors(with(rotaryModelText, "hidden: 32\nheads: 4", "hidden: 65536\nheads: 8")),
      "model_r6: m:4:1: hidden: expected hidden / heads to be at most 4096 where head_size is "
      "not given, got 8192\n");
}

TEST(Model, R7RotaryHeadsAreEven) {
  EXPECT_EQ(rotaryPlus("head_size: 7"),
            "model_r7: m:11:1: head_size: expected an even number with ROTARY positions, got 7\n");
  EXPECT_EQ(modelErrors(with(rotaryModelText, "hidden: 32", "hidden: 12")),
            "model_r7: m:4:1: hidden: expected hidden / heads to be even with ROTARY positions, "
            "got 3\n");
  EXPECT_EQ(changed("kv_heads: 4", "kv_heads: 4 head_size: 7"), "");
}

TEST(Model, R8RmsNormHasNoBias) {
  EXPECT_EQ(rotaryPlus("norm_bias: true"),
            "model_r8: m:11:1: norm_bias: expected false with RMS_NORM, got true\n");
  EXPECT_EQ(rotaryPlus("norm_bias: false"), "");
}

TEST(Model, R9NormEpsilon) {
  EXPECT_EQ(rotaryPlus("norm_epsilon: 0"),
            "model_r9: m:11:1: norm_epsilon: expected a number above 0 to 0.1, got 0\n");
  EXPECT_EQ(rotaryPlus("norm_epsilon: nan"),
            "model_r9: m:11:1: norm_epsilon: expected a number above 0 to 0.1, got nan\n");
  EXPECT_NE(rotaryPlus("norm_epsilon: inf"), "");
  EXPECT_NE(rotaryPlus("norm_epsilon: -1e-5"), "");
}

TEST(Model, R10RotaryNeedsRotaryPositions) {
  EXPECT_EQ(modelErrors(modelText + "rotary {}"),
            "model_r10: m:13:1: rotary: has no effect without ROTARY positions\n");
}

TEST(Model, R11RotaryFactor) {
  EXPECT_EQ(rotaryPlus("rotary { scaling: LINEAR }"),
            "model_r11: m:11:1: rotary.factor: missing required field\n");
  EXPECT_EQ(rotaryPlus("rotary { factor: 2 }"),
            "model_r11: m:11:10: rotary.factor: has no effect with scaling UNSCALED\n");
  EXPECT_EQ(rotaryPlus("rotary { scaling: LINEAR factor: 2 }"), "");
}

TEST(Model, R12Llama3Fields) {
  EXPECT_EQ(rotaryPlus("rotary { scaling: LLAMA3 factor: 2 }"),
            "model_r12: m:11:1: rotary.original_maximum_length: missing required field\n");
  EXPECT_EQ(
      rotaryPlus("rotary { scaling: LINEAR factor: 2 low_frequency_factor: 1\n"
                 "high_frequency_factor: 4\noriginal_maximum_length: 9 }"),
      "model_r12: m:11:36: rotary.low_frequency_factor: has no effect without scaling LLAMA3\n"
      "model_r12: m:12:1: rotary.high_frequency_factor: has no effect without scaling LLAMA3\n"
      "model_r12: m:13:1: rotary.original_maximum_length: has no effect without scaling "
      "LLAMA3 or YARN\n");
  EXPECT_EQ(rotaryPlus("rotary { scaling: LLAMA3 factor: 2 original_maximum_length: 64\n"
                       "high_frequency_factor: 1 }"),
            "model_r12: m:12:1: rotary.high_frequency_factor: expected more than "
            "low_frequency_factor 1, got 1\n");
}

TEST(Model, R12YarnFields) {
  EXPECT_EQ(rotaryPlus("rotary { scaling: YARN factor: 2 }"),
            "model_r12: m:11:1: rotary.original_maximum_length: missing required field\n");
  EXPECT_EQ(rotaryPlus("rotary { scaling: LINEAR factor: 2 fast_turns: 4\nwhole_pairs: false\n"
                       "score_scale: 2 }"),
            "model_r12: m:11:36: rotary.fast_turns: has no effect without scaling YARN\n"
            "model_r12: m:12:1: rotary.whole_pairs: has no effect without scaling YARN\n"
            "model_r12: m:13:1: rotary.score_scale: has no effect without scaling YARN\n");
  EXPECT_EQ(rotaryPlus("rotary { scaling: YARN factor: 2 original_maximum_length: 64\n"
                       "slow_turns: 32 }"),
            "model_r12: m:11:1: rotary.fast_turns: expected more than slow_turns 32, got 32\n");
}

TEST(Model, R13RotaryRanges) {
  EXPECT_EQ(rotaryPlus("rotary { theta: 1 }"),
            "model_r13: m:11:10: rotary.theta: expected a number above 1 to 1e+12, got 1\n");
  EXPECT_NE(rotaryPlus("rotary { scaling: LINEAR factor: 0.5 }"), "");
  std::string llama3 = "rotary { scaling: LLAMA3 factor: 2 original_maximum_length: ";
  EXPECT_NE(rotaryPlus(llama3 + "0 }"), "");
  EXPECT_NE(rotaryPlus(llama3 + "64 low_frequency_factor: 0 }"), "");
  EXPECT_NE(rotaryPlus(llama3 + "64 high_frequency_factor: inf }"), "");
  EXPECT_EQ(rotaryPlus(llama3 + "64 }"), "");
}

TEST(Model, R14Dropout) {
  EXPECT_EQ(rotaryPlus("dropout: 1"),
            "model_r14: m:11:1: dropout: expected a number from 0 to below 1, got 1\n");
  EXPECT_EQ(
      rotaryPlus("attention_dropout: -0.5"),
      "model_r14: m:11:1: attention_dropout: expected a number from 0 to below 1, got -0.5\n");
}

TEST(Model, R15LearnedPositionsNeedALength) {
  EXPECT_EQ(changed("maximum_length: 128\n", ""),
            "model_r15: m: maximum_length: missing required field\n");
}

TEST(Model, R16Initialization) {
  EXPECT_EQ(rotaryPlus("initialization { standard_deviation: 0 }"),
            "model_r16: m:11:18: initialization.standard_deviation: expected a number above 0 to "
            "10, got 0\n");
}

TEST(Model, R17QueryAndKeyNormsAreRmsNorms) {
  EXPECT_EQ(modelErrors(modelText + "query_key_norm: true"),
            "model_r17: m:13:1: query_key_norm: expected false with LAYER_NORM, got true\n");
  EXPECT_EQ(rotaryPlus("query_key_norm: true"), "");
}

TEST(Model, R18GraphsHaveNoOtherFields) {
  EXPECT_EQ(modelErrors("version: 1 name: 'g' layers: 2 dropout: 0.5 graph { file: 'g.onnx' }"),
            "model_r18: m:1:22: layers: has no effect with graph\n"
            "model_r18: m:1:32: dropout: has no effect with graph\n");
}

TEST(Model, R19GraphsAreFiles) {
  EXPECT_EQ(modelErrors("version: 1 name: 'g' graph {}"),
            "model_r19: m:1:22: graph.file: missing required field\n");
  EXPECT_EQ(modelErrors("version: 1 name: 'g' graph { file: '' }"),
            "model_r19: m:1:30: graph.file: expected the name of a file\n");
}

TEST(Model, R20BatchNormGroups) {
  EXPECT_EQ(modelErrors("version: 1 name: 'g' graph { file: 'f' batch_norm_group: 0 }"),
            "model_r20: m:1:40: graph.batch_norm_group: expected a number from 1 to 268435456, got "
            "0\n");
}

TEST(Model, GraphsStandBesideTheirDescriptions) {
  auto model = parseModel("version: 1 name: 'g' graph { file: 'g.onnx' constant: 'a' constant: "
                          "'b/c' batch_norm_group: 4 }",
                          "some/folder/model.textproto");
  ASSERT_TRUE(bool(model));
  ASSERT_TRUE(model->graph.has_value());
  EXPECT_EQ(model->graph->path, "some/folder/g.onnx");
  EXPECT_EQ(model->graph->constants, (std::vector<std::string>{"a", "b/c"}));
  EXPECT_EQ(model->graph->batchNormGroup, 4);
  auto again = parseModel(printModel(*model));
  ASSERT_TRUE(bool(again));
  EXPECT_EQ(*again->graph, *model->graph);
}

TEST(Model, AllViolationsAreListedInTheOrderOfTheFile) {
  EXPECT_EQ(modelErrors(with(with(modelText, "layers: 2", "layers: 0"), "GELU", "GELU dropout: 2")),
            "model_r4: m:3:1: layers: expected a number from 1 to 1024, got 0\n"
            "model_r14: m:9:18: dropout: expected a number from 0 to below 1, got 2\n");
}

TEST(Model, LargestModelDoesNotOverflow) {
  Result<ModelSpec> model = parseModel(R"(version: 1 name: "m" layers: 1024 hidden: 131072
    heads: 1024 head_size: 4096 ffn: 1048576 norm: LAYER_NORM activation: SWIGLU positions: LEARNED
    maximum_length: 1048576 vocabulary: 16777216 attention_biases: true mlp_biases: true)");
  ASSERT_TRUE(bool(model)) << errors(model);
  EXPECT_GT(parameterCount(*model), int64_t(1) << 48);
  EXPECT_LT(parameterCount(*model), int64_t(1) << 54);
}

TEST(Model, RotaryFrequencies) {
  // theta^(-2i / 8) for theta = 10000: 1, 0.1, 0.01, 0.001.
  ModelSpec model = *parseModel(rotaryModelText);
  std::vector<double> plain = rotaryFrequencies(model);
  ASSERT_EQ(plain.size(), 4u);
  for (int i = 0; i < 4; ++i) {
    EXPECT_NEAR(plain[i], std::pow(10, -i), 1e-15);
  }
  model.rotary.scaling = RotaryScaling::Linear;
  model.rotary.factor = 4;
  EXPECT_NEAR(rotaryFrequencies(model)[1], 0.025, 1e-15);

  // An original length of 2 pi * 250 positions sees 250, 25, 2.5 and 0.25 waves: the first two are
  // kept (at least 4), the last is divided (at most 1), and the third is kept by (2.5 - 1) / 3.
  model.rotary.scaling = RotaryScaling::Llama3;
  model.rotary.originalMaximumLength = 1571; // 2 pi * 250 = 1570.8
  std::vector<double> scaled = rotaryFrequencies(model);
  EXPECT_NEAR(scaled[0], 1, 1e-15);
  EXPECT_NEAR(scaled[1], 0.1, 1e-15);
  double waves = 1571 * 0.01 / (2 * std::numbers::pi);
  double kept = (waves - 1) / 3;
  EXPECT_NEAR(scaled[2], 0.01 * (kept + (1 - kept) / 4), 1e-15);
  EXPECT_NEAR(scaled[3], 0.00025, 1e-15);
}
