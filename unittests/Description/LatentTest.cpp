//===- LatentTest.cpp - latent attention and YaRN in descriptions ---------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Description/Model.h"
#include "weft/Description/Validate.h"

#include "Helpers.h"

#include <cmath>

using namespace weft::desc;
using namespace weft::desc::test;

static std::string latentText(const std::string &fields, const std::string &more = "") {
  return rotaryModelText + "head_size: 12 latent_attention { " + fields + " }\n" + more;
}

static std::string latentErrors(const std::string &fields, const std::string &more = "") {
  return errors(parseModel(latentText(fields, more), "m"));
}

TEST(Latent, IsReadAndPrinted) {
  Result<ModelSpec> model = parseModel(latentText("key_value_rank: 16 rotary_size: 4"));
  ASSERT_TRUE(bool(model)) << errors(model);
  EXPECT_EQ(*model->latent, (LatentSpec{16, 0, 4, 8}));
  EXPECT_EQ(model->rotarySize(), 4);
  EXPECT_EQ(model->valueSize(), 8);
  EXPECT_EQ(*parseModel(printModel(*model)), *model);
  // Queries 4 * 12 * 32, latent 16 * 32 with its norm, the rotated part of keys 4 * 32, keys and
  // values 4 * (8 + 8) * 16, output 32 * 4 * 8.
  int64_t attention = 1536 + 512 + 16 + 128 + 1024 + 1024;
  int64_t plain = 4 * 32 * 32;
  EXPECT_EQ(parameterCount(*model) - parameterCount(*parseModel(rotaryModelText)),
            2 * (attention - plain));

  model = parseModel(latentText("key_value_rank: 16 query_rank: 24 rotary_size: 4 value_size: 6"));
  ASSERT_TRUE(bool(model)) << errors(model);
  EXPECT_EQ(*model->latent, (LatentSpec{16, 24, 4, 6}));
  EXPECT_EQ(*parseModel(printModel(*model)), *model);
}

TEST(Latent, R27Ranges) {
  EXPECT_EQ(latentErrors("rotary_size: 4"),
            "model_r27: m:11:15: latent_attention.key_value_rank: missing required field\n");
  EXPECT_EQ(latentErrors("key_value_rank: 0 rotary_size: 4 query_rank: -1 value_size: 5000"),
            "model_r27: m:11:34: latent_attention.key_value_rank: expected a number from 1 to "
            "131072, got 0\n"
            "model_r27: m:11:67: latent_attention.query_rank: expected a number from 1 to 131072, "
            "got -1\n"
            "model_r27: m:11:82: latent_attention.value_size: expected a number from 1 to 4096, "
            "got 5000\n");
}

TEST(Latent, R28RotarySize) {
  for (const char *size : {"0", "3", "12", "14"}) {
    EXPECT_EQ(latentErrors("key_value_rank: 8 rotary_size: " + std::string(size)),
              "model_r28: m:11:52: latent_attention.rotary_size: expected an even number from 2 to "
              "less than the head size 12, got " +
                  std::string(size) + "\n");
  }
}

TEST(Latent, R29WhatItDoesWithout) {
  std::string fields = "key_value_rank: 8 rotary_size: 4";
  EXPECT_EQ(latentErrors(fields, "kv_heads: 2 attention_biases: true query_key_norm: true"),
            "model_r29: m:12:1: kv_heads: expected as many as heads with latent_attention\n"
            "model_r29: m:12:13: attention_biases: expected false with latent_attention\n"
            "model_r29: m:12:36: query_key_norm: expected false with latent_attention\n");
  EXPECT_NE(errors(parseModel(with(latentText(fields), "ROTARY", "NO_POSITIONS"))), "");
  EXPECT_NE(errors(parseModel(with(latentText(fields), "RMS_NORM", "LAYER_NORM"))), "");
}

TEST(Yarn, Frequencies) {
  Result<ModelSpec> model = parseModel(
      rotaryModelText + "rotary { theta: 100 scaling: YARN factor: 4 original_maximum_length: 64 "
                        "fast_turns: 4 slow_turns: 1 }");
  ASSERT_TRUE(bool(model)) << errors(model);
  EXPECT_EQ(*parseModel(printModel(*model)), *model);
  EXPECT_DOUBLE_EQ(model->rotary.rotatedScale, 0.1 * std::log(4) + 1);
  EXPECT_EQ(model->rotary.scoreScale, 1);
  // Pair 8 ln(64 / (2 pi turns)) / (2 ln 100): 0.81 and 2.02, so rounded from 0 to 3.
  std::vector<double> got = rotaryFrequencies(*model);
  ASSERT_EQ(got.size(), 4u);
  for (int i = 0; i < 4; ++i) {
    double plain = std::pow(100, -i / 4.0), stretched = i / 3.0;
    EXPECT_NEAR(got[i], plain * (stretched / 4 + 1 - stretched), 1e-12) << i;
  }
}

TEST(SelectionBias, TogetherR8NeedsOne) {
  MachineSpec machine = *parseMachine(machineText, "h");
  RecipeSpec recipe = *parseRecipe(recipeText + "routing { bias_update_speed: 0.1 }", "r");
  std::string experts = "experts { experts: 8 experts_per_token: 2";
  Diagnostics found =
      validateTogether(*parseModel(rotaryModelText + experts + " }"), recipe, machine);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found.front().rule, "together_r8");
  EXPECT_EQ(found.front().str(), "r:7:1: routing.bias_update_speed: has no effect, as model m has "
                                 "no selection_bias");
  ModelSpec model = *parseModel(rotaryModelText + experts + " selection_bias: true }");
  EXPECT_TRUE(validateTogether(model, recipe, machine).empty());
  EXPECT_EQ(*parseModel(printModel(model)), model);
}
