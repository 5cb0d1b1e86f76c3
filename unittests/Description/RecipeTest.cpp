//===- RecipeTest.cpp - rules and defaults of recipes ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Description/Recipe.h"

#include "Helpers.h"

using namespace weft::desc;
using namespace weft::desc::test;

static std::string changed(const std::string &from, const std::string &to) {
  return errors(parseRecipe(with(recipeText, from, to), "r"));
}

TEST(Recipe, DefaultsAreFilledIn) {
  Result<RecipeSpec> recipe = parseRecipe(recipeText);
  ASSERT_TRUE(bool(recipe)) << errors(recipe);
  EXPECT_EQ(recipe->globalBatch, 12);
  EXPECT_EQ(recipe->globalBatchTokens(), 12 * 128);
  EXPECT_EQ(recipe->precision, Precision::F32);
  const AdamWSpec &adamw = std::get<AdamWSpec>(recipe->optimizer);
  AdamWSpec defaults; // The struct and the schema state the same defaults.
  EXPECT_EQ(adamw.beta1, defaults.beta1);
  EXPECT_EQ(adamw.beta2, defaults.beta2);
  EXPECT_EQ(adamw.epsilon, defaults.epsilon);
  EXPECT_EQ(adamw.weightDecay, defaults.weightDecay);
  EXPECT_EQ(recipe->schedule.decay, DecayKind::Cosine);
  EXPECT_EQ(recipe->schedule.finalLearningRateFraction, 0.1);
  EXPECT_FALSE(recipe->clipNorm.has_value());
  EXPECT_EQ(recipe->zLoss, 0.0);
  EXPECT_EQ(recipe->seed, 0u);
  EXPECT_FALSE(recipe->fp8.has_value());
}

TEST(Recipe, Fp8) {
  auto fp8 = [](const std::string &given) {
    return parseRecipe(with(recipeText, "steps: 100", "steps: 100 " + given))->fp8.value();
  };
  EXPECT_EQ(fp8("fp8 {}").values, Float8::E4M3);
  EXPECT_EQ(fp8("fp8 {}").gradients, Float8::E5M2);
  EXPECT_EQ(fp8("precision: F64 fp8 { values: E5M2 gradients: E4M3 }").values, Float8::E5M2);
  EXPECT_EQ(fp8("precision: BF16 fp8 { values: E5M2 gradients: E4M3 }").gradients, Float8::E4M3);
  EXPECT_EQ(fp8("fp8 {}").history, 0);
  EXPECT_EQ(fp8("fp8 { scaling: DELAYED }").history, 1024);
  EXPECT_EQ(fp8("fp8 { scaling: DELAYED history: 16 }").history, 16);
  EXPECT_EQ(changed("steps: 100", "steps: 100 fp8 { values: E3M4 }"),
            "r:6:26: values: expected one of E4M3, E5M2, got 'E3M4'\n");
}

TEST(Recipe, EveryFieldIsRead) {
  Result<RecipeSpec> recipe = parseRecipe(R"(version: 1 sequence_length: 8 global_batch_tokens: 24
    precision: F64 sgd { momentum: 0.5 weight_decay: 0.25 }
    schedule { peak_learning_rate: 2 warmup_steps: 3 decay: LINEAR
               final_learning_rate_fraction: 0 }
    clip_norm: 1.5 z_loss: 0.001 steps: 9 seed: 18446744073709551615)");
  ASSERT_TRUE(bool(recipe)) << errors(recipe);
  EXPECT_EQ(recipe->globalBatch, 3);
  EXPECT_EQ(recipe->precision, Precision::F64);
  EXPECT_EQ(std::get<SgdSpec>(recipe->optimizer).momentum, 0.5);
  EXPECT_EQ(std::get<SgdSpec>(recipe->optimizer).weightDecay, 0.25);
  EXPECT_EQ(recipe->schedule.peakLearningRate, 2);
  EXPECT_EQ(recipe->schedule.warmupSteps, 3);
  EXPECT_EQ(recipe->schedule.decay, DecayKind::Linear);
  EXPECT_EQ(recipe->schedule.finalLearningRateFraction, 0);
  EXPECT_EQ(recipe->clipNorm, 1.5);
  EXPECT_EQ(recipe->zLoss, 0.001);
  EXPECT_EQ(recipe->steps, 9);
  EXPECT_EQ(recipe->seed, UINT64_MAX);
  EXPECT_EQ(recipe->sequenceLengthLocation.column, 12);

  recipe = parseRecipe(with(with(recipeText, "adamw {}",
                                 "adamw { beta1: 0.5 beta2: 0.6 epsilon: 0.7 weight_decay: 0.8 }"),
                            "1e-3", "1e-3 decay: CONSTANT"));
  ASSERT_TRUE(bool(recipe)) << errors(recipe);
  const AdamWSpec &adamw = std::get<AdamWSpec>(recipe->optimizer);
  EXPECT_EQ(adamw.beta1, 0.5);
  EXPECT_EQ(adamw.beta2, 0.6);
  EXPECT_EQ(adamw.epsilon, 0.7);
  EXPECT_EQ(adamw.weightDecay, 0.8);
  EXPECT_EQ(recipe->schedule.finalLearningRateFraction, 1);
}

TEST(Recipe, TF32) {
  auto recipe = parseRecipe(with(recipeText, "version: 1", "version: 1 precision: TF32"), "r");
  ASSERT_TRUE(bool(recipe)) << errors(recipe);
  EXPECT_EQ(recipe->precision, Precision::TF32);
  EXPECT_EQ(recipe->reduction, Precision::F32);
  EXPECT_STREQ(nameOf(recipe->precision), "TF32");
  EXPECT_EQ(bytesOf(recipe->precision), 4);
}

TEST(Recipe, F16HasALossScale) {
  auto recipe = parseRecipe(with(recipeText, "version: 1", "version: 1 precision: F16"), "r");
  ASSERT_TRUE(bool(recipe)) << errors(recipe);
  LossScaleSpec defaults; // The struct and the schema state the same.
  ASSERT_TRUE(recipe->lossScale.has_value());
  EXPECT_EQ(recipe->lossScale->initial, defaults.initial);
  EXPECT_EQ(recipe->lossScale->growthInterval, defaults.growthInterval);
  EXPECT_EQ(recipe->lossScale->factor, defaults.factor);
  EXPECT_EQ(recipe->reduction, Precision::F32);
  recipe = parseRecipe(with(recipeText, "version: 1",
                            "version: 1 precision: F16 loss_scale { initial: 8 growth_interval: 3 "
                            "factor: 4 } mixed {}"),
                       "r");
  ASSERT_TRUE(bool(recipe)) << errors(recipe);
  EXPECT_EQ(recipe->lossScale->initial, 8);
  EXPECT_EQ(recipe->lossScale->growthInterval, 3);
  EXPECT_EQ(recipe->lossScale->factor, 4);
}

TEST(Recipe, R18NoProgramsOfFp8) {
  EXPECT_EQ(changed("version: 1", "version: 1 precision: F8"),
            "recipe_r18: r:1:12: precision: expected F64, F32, BF16, TF32 or F16, got F8\n");
}

TEST(Recipe, R19LossScale) {
  EXPECT_EQ(changed("version: 1", "version: 1 loss_scale {}"),
            "recipe_r19: r:1:12: loss_scale: has no effect with precision F32\n");
  auto scale = [](const std::string &given) {
    return changed("version: 1", "version: 1 precision: F16 loss_scale { " + given + " }");
  };
  EXPECT_EQ(scale("initial: 3"),
            "recipe_r19: r:1:40: loss_scale.initial: expected a power of two, got 3\n");
  EXPECT_NE(scale("initial: 0.5"), "");
  EXPECT_NE(scale("initial: 33554432"), "");
  EXPECT_NE(scale("factor: 1"), "");
  EXPECT_NE(scale("growth_interval: -1"), "");
  EXPECT_EQ(scale("growth_interval: 0"), "");
  EXPECT_NE(scale("growth_interval: 0 factor: 2"), "");
}

TEST(Recipe, R20Fp8LeaveTheRangeOfF16) {
  EXPECT_EQ(changed("version: 1", "version: 1 precision: F16 fp8 {}"),
            "recipe_r20: r:1:27: fp8: expected a precision with the range of float32, got F16\n");
}

TEST(Recipe, R22DocumentsEndWithAToken) {
  auto documents = [](const std::string &given) {
    return changed("version: 1", "version: 1 documents { " + given + " }");
  };
  EXPECT_EQ(documents("end: 0"), "");
  EXPECT_EQ(documents("end: 2147483647"), "");
  EXPECT_NE(documents("end: 2147483648").find("recipe_r22"), std::string::npos);
  EXPECT_NE(documents("end: -1").find("recipe_r22"), std::string::npos);
  EXPECT_NE(documents("").find("recipe_r22"), std::string::npos);
}

TEST(Recipe, R21HistoriesOfDelayedScales) {
  auto fp8 = [](const std::string &given) {
    return changed("version: 1", "version: 1 fp8 { " + given + " }");
  };
  EXPECT_EQ(fp8("history: 8"),
            "recipe_r21: r:1:18: fp8.history: has no effect with scaling CURRENT\n");
  EXPECT_EQ(fp8("scaling: DELAYED history: 65536"), "");
  EXPECT_NE(fp8("scaling: DELAYED history: 0"), "");
  EXPECT_NE(fp8("scaling: DELAYED history: 65537"), "");
}

TEST(Recipe, R1Version) {
  EXPECT_EQ(changed("version: 1", "version: 0"), "recipe_r1: r:1:1: version: expected 1, got 0\n");
}

TEST(Recipe, R2MissingFields) {
  EXPECT_EQ(errors(parseRecipe("version: 1 global_batch_samples: 1 sgd {}", "r")),
            "recipe_r2: r: schedule: missing required field\n"
            "recipe_r2: r: steps: missing required field\n");
  EXPECT_EQ(changed("peak_learning_rate: 1e-3", ""),
            "recipe_r2: r:5:1: schedule.peak_learning_rate: missing required field\n");
}

TEST(Recipe, R3Counts) {
  EXPECT_EQ(changed("sequence_length: 128", "sequence_length: 0"),
            "recipe_r3: r:2:1: sequence_length: expected a number from 1 to 1048576, got 0\n");
  EXPECT_NE(changed("steps: 100", "steps: 0"), "");
  EXPECT_NE(changed("sequences: 12", "sequences: -3"), "");
  EXPECT_NE(changed("sequences: 12", "tokens: 0"), "");
}

TEST(Recipe, R4Batch) {
  EXPECT_EQ(changed("global_batch_sequences: 12\n", ""),
            "recipe_r4: r: global_batch_sequences: missing, expected this or "
            "global_batch_tokens\n");
  EXPECT_EQ(changed("12\n", "12\nglobal_batch_tokens: 128\n"),
            "r:4:1: field 'global_batch_tokens' is specified along with field "
            "'global_batch_sequences', another member of oneof 'global_batch'\n");
}

TEST(Recipe, R5TokensAreWholeSequences) {
  EXPECT_EQ(
      changed("sequences: 12", "tokens: 200"),
      "recipe_r5: r:3:1: global_batch_tokens: expected a multiple of sequence_length 128, got "
      "200\n");
}

TEST(Recipe, R5TokensNeedALength) {
  EXPECT_EQ(changed("sequence_length: 128\nglobal_batch_sequences: 12", "global_batch_tokens: 12"),
            "recipe_r5: r:2:1: global_batch_tokens: expected a sequence_length as well, to "
            "compute the number of sequences\n");
}

TEST(Recipe, SamplesAreSequencesOrImages) {
  Result<RecipeSpec> recipe = parseRecipe(with(
      recipeText, "sequence_length: 128\nglobal_batch_sequences: 12", "global_batch_samples: 7"));
  ASSERT_TRUE(bool(recipe)) << errors(recipe);
  EXPECT_EQ(recipe->globalBatch, 7);
  EXPECT_EQ(recipe->sequenceLength, 0);
  EXPECT_EQ(
      changed("global_batch_sequences: 12", "global_batch_samples: 0"),
      "recipe_r3: r:3:1: global_batch_samples: expected a number from 1 to 268435456, got 0\n");
}

TEST(Recipe, R6BatchIsBounded) {
  EXPECT_EQ(changed("sequences: 12", "sequences: 2097153"),
            "recipe_r6: r:3:1: global_batch_sequences: expected at most 268435456 tokens in a "
            "batch, got 2097153 sequences of 128\n");
  EXPECT_EQ(changed("sequences: 12", "sequences: 2097152"), "");
}

TEST(Recipe, R7Optimizer) {
  EXPECT_EQ(changed("adamw {}\n", ""),
            "recipe_r7: r: adamw: missing, expected this, sgd or muon\n");
}

TEST(Recipe, R8OptimizerRanges) {
  EXPECT_EQ(changed("adamw {}", "adamw { beta1: 1 beta2: -1 epsilon: 0 weight_decay: nan }"),
            "recipe_r8: r:4:9: adamw.beta1: expected a number from 0 to below 1, got 1\n"
            "recipe_r8: r:4:18: adamw.beta2: expected a number from 0 to below 1, got -1\n"
            "recipe_r8: r:4:28: adamw.epsilon: expected a number above 0 to 1, got 0\n"
            "recipe_r8: r:4:39: adamw.weight_decay: expected a number from 0 to 10, got nan\n");
  EXPECT_EQ(changed("adamw {}", "sgd { momentum: 1 weight_decay: 11 }"),
            "recipe_r8: r:4:7: sgd.momentum: expected a number from 0 to below 1, got 1\n"
            "recipe_r8: r:4:19: sgd.weight_decay: expected a number from 0 to 10, got 11\n");
}

TEST(Recipe, R8MuonRanges) {
  EXPECT_EQ(changed("adamw {}", "muon { momentum: 1 iterations: 0 adamw_rate: 0 epsilon: 2 }"),
            "recipe_r8: r:4:8: muon.momentum: expected a number from 0 to below 1, got 1\n"
            "recipe_r8: r:4:20: muon.iterations: expected a number from 1 to 100, got 0\n"
            "recipe_r8: r:4:48: muon.epsilon: expected a number above 0 to 1, got 2\n"
            "recipe_r8: r:4:34: muon.adamw_rate: expected a number above 0 to 1000, got 0\n");
}

TEST(Recipe, Muon) {
  MuonSpec defaults; // The struct and the schema state the same defaults.
  MuonSpec muon =
      std::get<MuonSpec>(parseRecipe(with(recipeText, "adamw {}", "muon {}"))->optimizer);
  EXPECT_EQ(muon.momentum, defaults.momentum);
  EXPECT_EQ(muon.nesterov, defaults.nesterov);
  EXPECT_EQ(muon.iterations, defaults.iterations);
  EXPECT_EQ(muon.scale, defaults.scale);
  EXPECT_EQ(muon.adamwRate, defaults.adamwRate);
  EXPECT_EQ(muon.adamw.beta1, defaults.adamw.beta1);
  EXPECT_EQ(muon.adamw.weightDecay, defaults.adamw.weightDecay);
  muon = std::get<MuonSpec>(
      parseRecipe(with(recipeText, "adamw {}",
                       "muon { momentum: 0.5 nesterov: false iterations: 7 scale: SPECTRAL "
                       "weight_decay: 0.25 beta1: 0.1 beta2: 0.2 epsilon: 0.3 adamw_rate: 4 }"))
          ->optimizer);
  EXPECT_EQ(muon.momentum, 0.5);
  EXPECT_FALSE(muon.nesterov);
  EXPECT_EQ(muon.iterations, 7);
  EXPECT_EQ(muon.scale, MuonScale::Spectral);
  EXPECT_EQ(muon.adamw.weightDecay, 0.25);
  EXPECT_EQ(muon.adamw.beta1, 0.1);
  EXPECT_EQ(muon.adamw.beta2, 0.2);
  EXPECT_EQ(muon.adamw.epsilon, 0.3);
  EXPECT_EQ(muon.adamwRate, 4);
}

TEST(Recipe, R9ScheduleRanges) {
  EXPECT_EQ(changed("1e-3", "0 warmup_steps: -1 final_learning_rate_fraction: 2"),
            "recipe_r9: r:5:12: schedule.peak_learning_rate: expected a number above 0 to 100, got "
            "0\n"
            "recipe_r9: r:5:34: schedule.warmup_steps: expected a number from 0 to 1000000000, got "
            "-1\n"
            "recipe_r9: r:5:51: schedule.final_learning_rate_fraction: expected a number from 0 to "
            "1, got 2\n");
}

TEST(Recipe, R10WarmupEndsInTime) {
  EXPECT_EQ(changed("1e-3", "1e-3 warmup_steps: 101"),
            "recipe_r10: r:5:37: schedule.warmup_steps: expected at most steps 100, got 101\n");
  EXPECT_EQ(changed("1e-3", "1e-3 warmup_steps: 100"), "");
}

TEST(Recipe, R11ConstantHasNoEnd) {
  EXPECT_EQ(changed("1e-3", "1e-3 decay: CONSTANT final_learning_rate_fraction: 1"),
            "recipe_r11: r:5:53: schedule.final_learning_rate_fraction: has no effect with decay "
            "CONSTANT\n");
}

TEST(Recipe, R12ClipAndZLoss) {
  EXPECT_EQ(changed("steps: 100", "steps: 100 clip_norm: 0 z_loss: -1"),
            "recipe_r12: r:6:12: clip_norm: expected a number above 0 to 1e+30, got 0\n"
            "recipe_r12: r:6:25: z_loss: expected a number from 0 to 1, got -1\n");
  EXPECT_NE(changed("steps: 100", "steps: 100 clip_norm: inf"), "");
}

TEST(Recipe, R13MixedOnlyWithBF16) {
  EXPECT_EQ(changed("steps: 100", "steps: 100 mixed {}"),
            "recipe_r13: r:6:12: mixed: has no effect with precision F32\n");
  EXPECT_EQ(changed("steps: 100", "steps: 100 precision: F64 mixed { reduction: F32 }"),
            "recipe_r13: r:6:27: mixed: has no effect with precision F64\n");
  EXPECT_EQ(changed("steps: 100", "steps: 100 precision: BF16 mixed {}"), "");
}

TEST(Recipe, R14MixedFormats) {
  EXPECT_EQ(changed("steps: 100", "steps: 100 precision: BF16 "
                                  "mixed { master: BF16 accumulation: BF16 reduction: F64 "
                                  "gradient_accumulation: F16 }"),
            "recipe_r14: r:6:36: mixed.master: expected F32, got BF16\n"
            "recipe_r14: r:6:49: mixed.accumulation: expected F32, got BF16\n"
            "recipe_r14: r:6:68: mixed.reduction: expected F32 or BF16, got F64\n"
            "recipe_r14: r:6:83: mixed.gradient_accumulation: expected F32 or BF16, got F16\n");
  EXPECT_EQ(
      changed("steps: 100", "steps: 100 precision: F16 mixed { gradient_accumulation: BF16 }"),
      "recipe_r14: r:6:35: mixed.gradient_accumulation: expected F32, got BF16\n");
}

TEST(Recipe, R17LossChunks) {
  EXPECT_EQ(parseRecipe(recipeText)->lossChunks, 1);
  EXPECT_EQ(parseRecipe(with(recipeText, "steps: 100", "steps: 100 loss_chunks: 64"))->lossChunks,
            64);
  EXPECT_EQ(changed("steps: 100", "steps: 100 loss_chunks: 0"),
            "recipe_r17: r:6:12: loss_chunks: expected a number from 1 to 1048576, got 0\n");
}

TEST(Recipe, Reduction) {
  auto reduction = [](const std::string &given) {
    return parseRecipe(with(recipeText, "steps: 100", "steps: 100 " + given))->reduction;
  };
  EXPECT_EQ(reduction("precision: F64"), Precision::F64);
  EXPECT_EQ(reduction("precision: BF16"), Precision::F32);
  EXPECT_EQ(reduction("precision: BF16 mixed { reduction: BF16 }"), Precision::BF16);
}

TEST(Recipe, Gradients) {
  auto gradients = [](const std::string &given) {
    return parseRecipe(with(recipeText, "steps: 100", "steps: 100 " + given))->gradientAccumulation;
  };
  EXPECT_EQ(gradients("precision: F64"), Precision::F64);
  EXPECT_EQ(gradients("precision: BF16"), Precision::F32);
  EXPECT_EQ(gradients("precision: BF16 mixed { gradient_accumulation: BF16 }"), Precision::BF16);
}

TEST(Recipe, LearningRate) {
  RecipeSpec recipe;
  recipe.steps = 14;
  recipe.schedule = {8.0, 4, DecayKind::Linear, 0.5};
  EXPECT_DOUBLE_EQ(learningRate(recipe, 0), 2.0);
  EXPECT_DOUBLE_EQ(learningRate(recipe, 3), 8.0);
  EXPECT_DOUBLE_EQ(learningRate(recipe, 4), 8.0);
  EXPECT_DOUBLE_EQ(learningRate(recipe, 9), 6.0); // Half way from 8 to 4.
  EXPECT_DOUBLE_EQ(learningRate(recipe, 14), 4.0);
  EXPECT_DOUBLE_EQ(learningRate(recipe, 1000), 4.0);
  recipe.schedule.decay = DecayKind::Cosine;
  EXPECT_DOUBLE_EQ(learningRate(recipe, 4), 8.0);
  EXPECT_DOUBLE_EQ(learningRate(recipe, 9), 6.0);
  EXPECT_DOUBLE_EQ(learningRate(recipe, 14), 4.0);
  recipe.schedule.decay = DecayKind::Constant;
  EXPECT_DOUBLE_EQ(learningRate(recipe, 13), 8.0);
  // Warmup to the last step leaves no steps to decay over.
  recipe.schedule = {8.0, 14, DecayKind::Linear, 0.5};
  EXPECT_DOUBLE_EQ(learningRate(recipe, 13), 8.0);
  EXPECT_DOUBLE_EQ(learningRate(recipe, 14), 4.0);
}

TEST(Recipe, Precision) {
  EXPECT_STREQ(nameOf(Precision::F64), "F64");
  EXPECT_STREQ(nameOf(Precision::F32), "F32");
  EXPECT_EQ(bytesOf(Precision::F64), 8);
  EXPECT_EQ(bytesOf(Precision::F32), 4);
  EXPECT_STREQ(nameOf(Precision::BF16), "BF16");
  EXPECT_EQ(bytesOf(Precision::BF16), 2);
}
