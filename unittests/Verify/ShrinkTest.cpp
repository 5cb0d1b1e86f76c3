//===- ShrinkTest.cpp - tests of small models that are split as large ones ===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Verify/Shrink.h"
#include "weft/Description/ExpertSlots.h"
#include "weft/Description/Pins.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>

using namespace weft;
using namespace weft::verify;

namespace {

desc::ModelSpec modelOf(const std::string &more = "") {
  std::string text =
      R"(version: 1 name: "m" layers: 12 hidden: 768 heads: 16 kv_heads: 8 head_size: 64
    ffn: 2048 norm: RMS_NORM activation: SWIGLU positions: ROTARY vocabulary: 50257 )";
  return *desc::parseModel(text + more);
}

desc::RecipeSpec recipeOf(const std::string &more = "adamw {}") {
  return *desc::parseRecipe(R"(version: 1 sequence_length: 1024 global_batch_sequences: 64
    schedule { peak_learning_rate: 1e-3 warmup_steps: 100 } steps: 1000 )" +
                            more);
}

desc::PlanSpec planOf(const std::string &pins) { return *desc::applyPins({pins}); }

Shrunk shrunkOf(const std::string &pins, const std::string &more = "") {
  return shrink(modelOf(more), recipeOf(), planOf(pins));
}

std::vector<int64_t> axesOf(const desc::PlanSpec &plan) {
  std::vector<int64_t> sizes;
  sizes.reserve(plan.mesh.size());
  for (const desc::AxisSpec &axis : plan.mesh) {
    sizes.push_back(axis.size);
  }
  return sizes;
}

/// All products of axes.
std::set<int64_t> waysOf(const desc::PlanSpec &plan) {
  std::set<int64_t> ways = {1};
  for (int64_t size : axesOf(plan)) {
    for (int64_t other : std::set<int64_t>(ways)) {
      ways.insert(other * size);
    }
  }
  return ways;
}

TEST(ShrinkTest, SizesDivideAsBeforeAndDiffer) {
  for (const char *pins : {"dp=2", "dp=2,tp=2", "dp=2,cp=2,tp=2", "dp=4,tp=4", "tp=8", "dp=16"}) {
    SCOPED_TRACE(pins);
    Shrunk small = shrunkOf(pins);
    desc::ModelSpec model = modelOf();
    std::pair<int64_t, int64_t> sizes[] = {{model.hidden, small.model.hidden},
                                           {model.kvHeads, small.model.kvHeads},
                                           {model.headSize, small.model.headSize},
                                           {model.ffn, small.model.ffn},
                                           {model.vocabulary, small.model.vocabulary},
                                           {1024, small.recipe.sequenceLength},
                                           {64, small.recipe.globalBatch}};
    std::set<int64_t> different;
    for (auto [before, after] : sizes) {
      EXPECT_TRUE(different.insert(after).second) << after;
      EXPECT_LE(after, before);
      for (int64_t ways : waysOf(planOf(pins))) {
        EXPECT_EQ(before % ways == 0, after % ways == 0) << before << " " << after << " " << ways;
      }
    }
    EXPECT_EQ(small.model.group(), 2);
    EXPECT_LE(small.model.hidden, 128);
    EXPECT_TRUE(small.notKept.empty());
  }
}

TEST(ShrinkTest, AxesShrinkToSixteenRanksButNeverToOne) {
  EXPECT_EQ(axesOf(shrunkOf("dp=2,tp=8").plan), (std::vector<int64_t>{2, 8}));
  EXPECT_EQ(axesOf(shrunkOf("dp=64,tp=8").plan), (std::vector<int64_t>{4, 4}));
  EXPECT_EQ(axesOf(shrunkOf("dp=17").plan), (std::vector<int64_t>{2}));
  EXPECT_EQ(axesOf(shrunkOf("dp=2,ep=2,cp=512,tp=2").plan), (std::vector<int64_t>{2, 2, 2, 2}));
}

TEST(ShrinkTest, AxesOfDivisorsDivideNothingNew) {
  auto sizes = [](const std::string &pins) {
    return axesOf(shrink(modelOf(), recipeOf(), planOf(pins), AxisSizes::Divisors).plan);
  };
  EXPECT_EQ(sizes("dp=8,tp=8"), (std::vector<int64_t>{8, 8}));
  EXPECT_EQ(sizes("dp=64,tp=5"), (std::vector<int64_t>{8, 5}));
  EXPECT_EQ(sizes("dp=17,tp=5"), (std::vector<int64_t>{17, 5}));
}

TEST(ShrinkTest, ManyAxesHaveMoreRanksAndItSaysSo) {
  desc::PlanSpec plan = *desc::parseMesh("a=4,b=2,c=2,d=2,e=2");
  Shrunk small = shrink(modelOf(), recipeOf(), plan);
  EXPECT_EQ(small.plan.ranks(), 32);
  ASSERT_FALSE(small.notKept.empty());
  EXPECT_EQ(small.notKept[0], "at most 16 ranks: no axis gets less than 2");
}

TEST(ShrinkTest, TwoLayersOfEachKind) {
  EXPECT_EQ(shrunkOf("dp=2").layers, (std::vector<int64_t>{0, 1}));
  Shrunk first = shrunkOf("ep=2", "experts { experts: 64 experts_per_token: 6 first_layer: 1 }");
  EXPECT_EQ(first.layers, (std::vector<int64_t>{0, 1, 2}));
  Shrunk period = shrunkOf("ep=2", "experts { experts: 64 experts_per_token: 6 layer_period: 3 }");
  EXPECT_EQ(period.layers, (std::vector<int64_t>{0, 1, 2, 5}));
}

TEST(ShrinkTest, LayersKeepTheOrderOfTheirKinds) {
  for (const char *order :
       {"first_layer: 1", "layer_period: 3", "first_layer: 0 layer_period: 2",
        "first_layer: 0 layer_period: 3", "first_layer: 1 layer_period: 2",
        "first_layer: 1 layer_period: 4", "first_layer: 4 layer_period: 3", "first_layer: 5"}) {
    std::string text = std::string("experts { experts: 64 experts_per_token: 6 ") + order + " }";
    desc::ModelSpec model = modelOf(text);
    Shrunk small = shrunkOf("ep=2", text);
    EXPECT_TRUE(std::is_sorted(small.layers.begin(), small.layers.end())) << order;
    for (size_t i = 0; i < small.layers.size(); ++i) {
      EXPECT_EQ(small.model.hasExperts(int64_t(i)), model.hasExperts(small.layers[i])) << order;
    }
  }
}

TEST(ShrinkTest, ExpertsStillFitTheirGroups) {
  Shrunk small = shrunkOf("ep=8", "experts { experts: 256 experts_per_token: 8 scoring: SIGMOID "
                                  "groups: 8 kept_groups: 4 shared_ffn: 512 ffn: 512 }");
  const desc::ExpertsSpec &experts = *small.model.experts;
  EXPECT_EQ(experts.count % 8, 0);
  EXPECT_EQ(experts.count % experts.groups, 0);
  EXPECT_GE(experts.count / experts.groups, 2);
  EXPECT_LT(experts.keptGroups, experts.groups);
  EXPECT_LE(experts.perToken, experts.keptGroups * experts.count / experts.groups);
  EXPECT_GT(experts.perToken, 1);
  EXPECT_NE(experts.ffn, experts.sharedFfn);
}

TEST(ShrinkTest, SlotsOfExpertsDivideAsBefore) {
  desc::ModelSpec model = modelOf("experts { experts: 16 experts_per_token: 2 }");
  for (const char *routing : {"capacity_factor: 1.25", "buffer_factor: 1.25",
                              "capacity_factor: 1.25 capacity_group: GLOBAL_BATCH"}) {
    for (const char *pins : {"tp=4,ep=2", "tp=3", "cp=2,tp=2"}) {
      SCOPED_TRACE(std::string(routing) + " " + pins);
      desc::RecipeSpec recipe = recipeOf(std::string("adamw {} routing { ") + routing + " }");
      Shrunk small = shrink(model, recipe, planOf(pins));
      int64_t before = desc::slotsOf(*model.experts, recipe);
      int64_t after = desc::slotsOf(*small.model.experts, small.recipe);
      for (int64_t ways : waysOf(planOf(pins))) {
        EXPECT_EQ(before % ways == 0, after % ways == 0) << before << " " << after << " " << ways;
      }
    }
  }
  // A buffer of 12 tokens of 16 becomes one for a sequence that 3 divides, though not 16.
  desc::RecipeSpec recipe = recipeOf("adamw {} routing { buffer_factor: 6 }");
  recipe.sequenceLength = 16;
  EXPECT_EQ(shrink(model, recipe, planOf("tp=3")).recipe.sequenceLength % 3, 0);
}

TEST(ShrinkTest, ExpertsThatStayFitTheirGroups) {
  for (auto [count, groups, fewer] : {std::array{10, 5, 2}, {5, 5, 5}, {9, 9, 3}}) {
    desc::ModelSpec model = modelOf("experts { experts: 16 experts_per_token: 2 }");
    model.experts->count = count;
    model.experts->groups = groups;
    model.experts->keptGroups = 2;
    Shrunk small = shrink(model, recipeOf(), planOf("dp=2"));
    EXPECT_EQ(small.model.experts->groups, fewer);
    EXPECT_EQ(small.model.experts->count % fewer, 0);
  }
}

TEST(ShrinkTest, WindowsStayShorterThanSequences) {
  Shrunk small = shrunkOf("dp=2", "attention_window: 256");
  EXPECT_LT(small.model.attentionWindow, small.recipe.sequenceLength);
  EXPECT_GT(small.model.attentionWindow, 1);
  small = shrunkOf("dp=2", "attention_window: 4096");
  EXPECT_GE(small.model.attentionWindow, small.recipe.sequenceLength);
}

TEST(ShrinkTest, ShardsOfSequencesKeepTheirHalves) {
  for (const char *pins : {"cp=2", "cp=4", "dp=2,cp=2,tp=2"}) {
    int64_t sequence = shrunkOf(pins).recipe.sequenceLength;
    EXPECT_EQ(sequence % (2 * planOf(pins).axis("cp")->size), 0) << sequence;
  }
}

TEST(ShrinkTest, SequencesAsLongAsTheModelAllowsStaySo) {
  Shrunk small = shrunkOf("cp=2", "maximum_length: 1024");
  EXPECT_EQ(small.model.maximumLength, small.recipe.sequenceLength);
  small = shrunkOf("cp=2", "maximum_length: 2048");
  EXPECT_GT(small.model.maximumLength, small.recipe.sequenceLength);
}

TEST(ShrinkTest, TheRecipeKeepsWhatChangesThePlan) {
  desc::RecipeSpec recipe = recipeOf("precision: BF16 clip_norm: 1 z_loss: 1e-4 seed: 7 "
                                     "adamw { weight_decay: 0.2 epsilon: 1e-12 }");
  Shrunk small = shrink(modelOf("dropout: 0.1"), recipe, planOf("dp=2"));
  EXPECT_EQ(small.recipe.precision, desc::Precision::F64);
  EXPECT_EQ(small.recipe.steps, kSteps);
  EXPECT_EQ(small.recipe.clipNorm, 1.0);
  EXPECT_EQ(small.recipe.zLoss, 1e-4);
  EXPECT_EQ(small.recipe.seed, 7u);
  EXPECT_EQ(small.model.dropout, 0.1);
  EXPECT_EQ(std::get<desc::AdamWSpec>(small.recipe.optimizer).weightDecay, 0.2);
  EXPECT_EQ(std::get<desc::AdamWSpec>(small.recipe.optimizer).epsilon, 1e-8);
  ASSERT_EQ(small.notKept.size(), 1u);
  EXPECT_NE(small.notKept[0].find("rounding to bf16"), std::string::npos);
}

/// Elements with padding for `shards`, and whether one of them has nothing else.
std::pair<int64_t, bool> paddedOf(int64_t size, int64_t shards) {
  int64_t padded = (size + shards - 1) / shards * shards;
  return {padded, padded - size >= padded / shards};
}

TEST(ShrinkTest, WhatIsPaddedStaysPadded) {
  struct Case {
    const char *pins;
    int64_t batch;
  };
  for (auto [pins, batch] : {Case{"dp=3", 64},
                             {"dp=5", 8},
                             {"dp=3,tp=2", 64},
                             {"dp=6", 20},
                             {"dp=12", 100},
                             {"dp=2,tp=3", 64}}) {
    SCOPED_TRACE(pins);
    desc::RecipeSpec recipe = recipeOf();
    recipe.globalBatch = batch;
    Shrunk small = shrink(modelOf(), recipe, planOf(pins));
    int64_t dp = planOf(pins).axis("dp")->size, after = small.recipe.globalBatch;
    auto [large, hadEmpty] = paddedOf(batch, dp);
    auto [padded, hasEmpty] = paddedOf(after, dp);
    EXPECT_LE(after, batch);
    EXPECT_EQ(large == batch, padded == after) << after;
    EXPECT_EQ(hadEmpty, hasEmpty) << after;
    for (int64_t ways : waysOf(planOf(pins))) {
      EXPECT_EQ(large % ways == 0, padded % ways == 0) << after << " " << ways;
    }
    EXPECT_TRUE(small.notKept.empty()) << small.notKept[0];
  }
}

TEST(ShrinkTest, RanksWithoutHeadsStayWithoutHeads) {
  for (const char *pins : {"tp=5", "tp=6", "tp=8", "dp=2,tp=7"}) {
    SCOPED_TRACE(pins);
    desc::ModelSpec model = modelOf();
    model.kvHeads = 4;
    model.heads = 8;
    Shrunk small = shrink(model, recipeOf(), planOf(pins));
    EXPECT_GE(small.model.kvHeads, 2);
    EXPECT_TRUE(paddedOf(small.model.kvHeads, small.plan.axis("tp")->size).second);
    EXPECT_EQ(small.model.group(), 2);
    EXPECT_TRUE(small.notKept.empty()) << small.notKept[0];
  }
}

/// Homes pad variables alone, so hidden is divided, or not, as in the large model by each axis.
TEST(ShrinkTest, VariablesPaddedBetweenStepsStaySo) {
  for (const char *pins : {"dp=5,zero=3", "dp=2,fsdp=5", "dp=5,zero=1"}) {
    SCOPED_TRACE(pins);
    Shrunk small = shrunkOf(pins);
    ASSERT_EQ(small.plan.mesh.size(), planOf(pins).mesh.size());
    for (size_t i = 0; i < small.plan.mesh.size(); ++i) {
      bool divided = modelOf().hidden % planOf(pins).mesh[i].size == 0;
      EXPECT_EQ(small.model.hidden % small.plan.mesh[i].size == 0, divided);
    }
    EXPECT_TRUE(std::none_of(small.notKept.begin(), small.notKept.end(),
                             [](const std::string &what) { return what.starts_with("hidden"); }));
  }
}

TEST(ShrinkTest, PaddedExpertsStayPaddedAndFitTheirGroups) {
  // Of 64 with padding no rank has nothing else.
  for (const char *groups : {"groups: 1", "groups: 4 kept_groups: 2"}) {
    Shrunk small = shrunkOf("ep=8", "experts { experts: 60 experts_per_token: 4 " +
                                        std::string(groups) + " }");
    const desc::ExpertsSpec &experts = *small.model.experts;
    EXPECT_LT(experts.count, 60);
    EXPECT_NE(experts.count % 8, 0);
    EXPECT_FALSE(paddedOf(experts.count, 8).second);
    EXPECT_EQ(experts.count % experts.groups, 0);
    EXPECT_TRUE(small.notKept.empty()) << small.notKept[0];
  }
}

TEST(ShrinkTest, PaddedSequencesKeepTheHalvesOfTheirShards) {
  for (int64_t sequence : {16, 17, 1024}) { // Shards of 6, 6 and 342.
    desc::RecipeSpec recipe = recipeOf();
    recipe.sequenceLength = sequence;
    int64_t after = shrink(modelOf(), recipe, planOf("cp=3")).recipe.sequenceLength;
    EXPECT_NE(after % 3, 0);
    EXPECT_EQ(paddedOf(after, 3).first % 6, 0) << after;
  }
}

TEST(ShrinkTest, PaddingThatASmallerAxisCannotHaveIsTold) {
  // 17 ranks, some of which have nothing of 20 samples, become 2.
  desc::RecipeSpec recipe = recipeOf();
  recipe.globalBatch = 20;
  Shrunk small = shrink(modelOf(), recipe, planOf("dp=17"));
  EXPECT_EQ(small.recipe.globalBatch % 2, 1);
  std::string told =
      "batch 20 is padded in another way than " + std::to_string(small.recipe.globalBatch);
  EXPECT_EQ(std::count(small.notKept.begin(), small.notKept.end(), told), 1);
}

TEST(ShrinkTest, DocumentsEndWithATokenThatIsThere) {
  Shrunk small = shrink(modelOf(), recipeOf("adamw {} documents { end: 50256 }"), planOf("dp=2"));
  EXPECT_EQ(small.recipe.documentEnd, 1);
  EXPECT_FALSE(shrunkOf("dp=2").recipe.documentEnd.has_value());
}

TEST(ShrinkTest, TwoLayersOfEachKindOfActivationsStay) {
  desc::PlanSpec plan = planOf("dp=2");
  plan.activations = desc::parsePlan(R"(version: 1
    activation { value: "*" last_layer: 4 saving: RECOMPUTED }
    activation { value: "mlp*" first_layer: 4 last_layer: 8 saving: KEPT }
    activation { value: "attention*" saving: KEPT })")
                         ->activations;
  desc::ModelSpec model = modelOf();
  model.layers = 12;
  Shrunk small = shrink(model, recipeOf(), plan);
  EXPECT_EQ(small.layers, (std::vector<int64_t>{0, 1, 4, 5, 6, 9, 10}));
  EXPECT_EQ(small.model.layers, 7);
  EXPECT_EQ(small.plan.activations[0].layers.last, 2);
  EXPECT_EQ(small.plan.activations[1].layers.first, 2);
  EXPECT_EQ(small.plan.activations[1].layers.last, 4);
  EXPECT_FALSE(small.plan.activations[2].layers.first || small.plan.activations[2].layers.last);
}

TEST(ShrinkTest, TwoLayersOfEachKindOfShardingsStay) {
  desc::PlanSpec plan = *desc::parsePlan(R"(version: 1 mesh { axis { name: "dp" size: 2 } }
    sharding { dimension: "batch" axes: "dp" }
    sharding { dimension: "ffn" first_layer: 5 last_layer: 7 }
    home { dimension: "hidden" axes: "dp" first_layer: 11 })");
  desc::ModelSpec model = modelOf();
  model.layers = 12;
  Shrunk small = shrink(model, recipeOf(), plan);
  EXPECT_EQ(small.layers, (std::vector<int64_t>{0, 1, 5, 6, 11}));
  EXPECT_EQ(small.plan.shardings[1].layers, (desc::LayerRange{2, 3}));
  EXPECT_EQ(small.plan.homes[0].layers, (desc::LayerRange{4, std::nullopt}));
  EXPECT_TRUE(small.plan.shardings[0].layers.isOpen());
}

TEST(ShrinkTest, WhereExpertsCannotBeInTheSamePlacesActivationsAreNotKept) {
  desc::PlanSpec plan = planOf("ep=2");
  plan.activations =
      desc::parsePlan("version: 1 activation { first_layer: 7 last_layer: 7 saving: RECOMPUTED }")
          ->activations;
  desc::ModelSpec model = modelOf("experts { experts: 64 experts_per_token: 6 layer_period: 3 }");
  model.layers = 12;
  Shrunk small = shrink(model, recipeOf(), plan);
  for (size_t i = 0; i < small.layers.size(); ++i) {
    EXPECT_EQ(small.model.hasExperts(int64_t(i)), model.hasExperts(small.layers[i]));
  }
  EXPECT_TRUE(small.plan.activations.empty());
  EXPECT_NE(small.notKept.back().find("which layers have which entries"), std::string::npos);
}

TEST(ShrinkTest, FourMicroBatchesAndTwoChunksOfManyStay) {
  Shrunk small =
      shrink(modelOf(), recipeOf("adamw {} loss_chunks: 16"), planOf("dp=2,cp=4,accumulation=8"));
  EXPECT_EQ(small.plan.accumulation, 4);
  EXPECT_EQ(small.recipe.globalBatch % 8, 0);
  EXPECT_EQ(small.recipe.lossChunks, 2);
  // Shards of parts, and halves of shards.
  EXPECT_EQ(small.recipe.sequenceLength % 8, 0);
  EXPECT_EQ(small.recipe.sequenceLength % 16, 0) << "the parts of 64 tokens divide by 8 as well";
  EXPECT_TRUE(small.notKept.empty()) << small.notKept[0];
  small = shrink(modelOf(), recipeOf(), planOf("dp=2,accumulation=2"));
  EXPECT_EQ(small.plan.accumulation, 2);
  EXPECT_EQ(small.recipe.lossChunks, 1);
}

TEST(ShrinkTest, ChunksStayWhereFewerWouldDivideOtherwise) {
  auto shrunkBy = [](int64_t sequence, int64_t chunks) {
    desc::RecipeSpec recipe = recipeOf();
    recipe.sequenceLength = sequence;
    recipe.lossChunks = chunks;
    return shrink(modelOf(), recipe, planOf("tp=2,sp=true"));
  };
  // No even number of chunks has an odd sequence, which is not padded as an even one is.
  Shrunk odd = shrunkBy(15, 3);
  EXPECT_EQ(odd.recipe.sequenceLength % odd.recipe.lossChunks, 0);
  EXPECT_EQ(odd.recipe.sequenceLength % 2, 1);
  // tp divides no chunk of one token.
  Shrunk ones = shrunkBy(8, 8);
  EXPECT_EQ(ones.recipe.sequenceLength, ones.recipe.lossChunks);
}

TEST(ShrinkTest, WindowsOfOneGetAGradientOfQueries) {
  EXPECT_EQ(shrunkOf("dp=2", "attention_window: 1").model.attentionWindow, 2);
}

TEST(ShrinkTest, LossScalesStay) {
  Shrunk small = shrink(modelOf(), recipeOf("adamw {} precision: F16 loss_scale { initial: 256 }"),
                        planOf("dp=2"));
  ASSERT_TRUE(small.recipe.lossScale.has_value());
  EXPECT_EQ(small.recipe.lossScale->initial, 256);
  EXPECT_EQ(small.recipe.precision, desc::Precision::F64);
}

TEST(ShrinkTest, LatentAttentionKeepsItsParts) {
  desc::ModelSpec model = *desc::parseModel(
      R"(version: 1 name: "m" layers: 12 hidden: 768 heads: 16 head_size: 192 ffn: 2048
    norm: RMS_NORM activation: SWIGLU positions: ROTARY vocabulary: 50257
    rotary { scaling: YARN factor: 40 original_maximum_length: 4096 score_scale: 1.3 }
    latent_attention { key_value_rank: 512 query_rank: 1536 rotary_size: 64 value_size: 128 })");
  Shrunk small = shrink(model, recipeOf(), planOf("dp=2,tp=4"));
  const desc::LatentSpec &latent = *small.model.latent;
  EXPECT_EQ(latent.rotarySize % 2, 0);
  EXPECT_LT(latent.rotarySize, small.model.headSize);
  EXPECT_EQ(small.model.heads, small.model.kvHeads);
  std::set<int64_t> different = {latent.keyValueRank, latent.queryRank, latent.rotarySize,
                                 latent.valueSize, small.model.headSize - latent.rotarySize};
  EXPECT_EQ(different.size(), 5u);
  for (int64_t size : different) {
    EXPECT_LE(size, 128);
    EXPECT_EQ(size % 4, 0) << "as they all do, by tp";
  }
  EXPECT_EQ(small.model.rotary, model.rotary);
  EXPECT_TRUE(small.notKept.empty()) << small.notKept[0];
}

TEST(ShrinkTest, MuonsMatricesKeepTheirShorterSides) {
  auto sign = [](int64_t a, int64_t b) { return (a > b) - (a < b); };
  for (int64_t heads : {4, 12, 16}) {
    for (int64_t ffn : {512, 768, 2048}) {
      desc::ModelSpec model = modelOf();
      model.kvHeads = heads / 2;
      model.heads = heads;
      model.ffn = ffn;
      Shrunk small = shrink(model, recipeOf("muon {}"), planOf("dp=2"));
      const desc::ModelSpec &to = small.model;
      EXPECT_EQ(sign(model.heads * 64, 768), sign(to.heads * to.headSize, to.hidden));
      EXPECT_EQ(sign(model.kvHeads * 64, 768), sign(to.kvHeads * to.headSize, to.hidden));
      EXPECT_EQ(sign(ffn, 768), sign(to.ffn, to.hidden));
      EXPECT_LE(to.hidden, 64);
      EXPECT_EQ(std::get<desc::MuonSpec>(small.recipe.optimizer).iterations, 5);
    }
  }
}

TEST(ShrinkTest, SidesGoBeforeSizesThatDiffer) {
  desc::ModelSpec model =
      modelOf("experts { experts: 16 experts_per_token: 3 ffn: 16 shared_ffn: 24 first_layer: 1 }");
  model.hidden = 32;
  model.heads = model.kvHeads = 8;
  model.headSize = 4;
  model.ffn = 64;
  desc::RecipeSpec recipe = recipeOf("muon {}");
  recipe.sequenceLength = 16;
  recipe.globalBatch = 8;
  const desc::ModelSpec to = shrink(model, recipe, planOf("dp=2")).model;
  EXPECT_EQ(to.hidden, to.heads * to.headSize);
  EXPECT_LT(to.experts->ffn, to.experts->sharedFfn);
  EXPECT_LT(to.experts->sharedFfn, to.hidden);
  EXPECT_LT(to.hidden, to.ffn);
}

TEST(ShrinkTest, ARoutersExpertsStayFewerThanHidden) {
  desc::ModelSpec model = modelOf("experts { experts: 64 experts_per_token: 3 ffn: 96 first_layer: "
                                  "1 scoring: SIGMOID groups: 4 kept_groups: 2 }");
  model.hidden = 128;
  model.heads = model.kvHeads = 32;
  model.headSize = 4;
  const desc::ModelSpec to = shrink(model, recipeOf("muon {}"), planOf("dp=2")).model;
  EXPECT_LT(to.experts->count, to.hidden);
  EXPECT_EQ(to.hidden, to.heads * to.headSize);
  EXPECT_GT(to.kvHeads, 2); // Two would be no longer than the experts are many.
  EXPECT_LE(to.kvHeads, 8);
}

TEST(ShrinkTest, SidesStayIfNoSmallerOnesKeepTheirOrder) {
  // Experts become fewer than 8, but hidden, which is less, does not.
  desc::ModelSpec model =
      modelOf("experts { experts: 10 experts_per_token: 3 ffn: 9 groups: 5 kept_groups: 3 }");
  model.hidden = model.ffn = 9;
  Shrunk small = shrink(model, recipeOf("muon {}"), planOf("dp=2"));
  EXPECT_EQ(small.model.hidden, 9);
  EXPECT_EQ(small.model.kvHeads, model.kvHeads);
  EXPECT_EQ(small.model.experts->ffn, 9);
  EXPECT_EQ(small.model.experts->count, 10);
  EXPECT_EQ(small.model.experts->groups, 5);
  EXPECT_LT(small.recipe.sequenceLength, 1024);
  EXPECT_LT(shrink(model, recipeOf("adamw {}"), planOf("dp=2")).model.experts->count, 10);
}

TEST(ShrinkTest, SidesAreDividedByOneNumberIfTheyDependOnEachOther) {
  desc::ModelSpec model = *desc::parseModel(
      R"(version: 1 name: "m" layers: 3 hidden: 960 heads: 2 head_size: 96 ffn: 256 norm: RMS_NORM
    activation: SWIGLU positions: ROTARY vocabulary: 1000 latent_attention { key_value_rank: 64
    rotary_size: 64 value_size: 32 } experts { experts: 3 experts_per_token: 2 })");
  Shrunk small = shrink(model, recipeOf("muon {}"), planOf("tp=2"));
  const desc::ModelSpec &to = small.model;
  // By 8: by 16, a value would have fewer elements than there are experts.
  EXPECT_EQ(to.hidden, 120);
  EXPECT_EQ(to.ffn, 32);
  EXPECT_EQ(to.heads, 2);
  EXPECT_EQ(to.headSize, 12);
  EXPECT_EQ(to.latent->rotarySize, 8);
  EXPECT_EQ(to.latent->keyValueRank, 8);
  EXPECT_EQ(to.latent->valueSize, 4);
  EXPECT_EQ(to.experts->count, 3);
}

TEST(ShrinkTest, OfAGraphOnlyTheBatchIsSmaller) {
  desc::ModelSpec model =
      *desc::parseModel(R"(version: 1 name: "g" graph { file: "g.onnx" batch_norm_group: 4 })");
  Shrunk small = shrink(model, recipeOf(), planOf("dp=2"));
  EXPECT_EQ(small.model, model);
  EXPECT_LT(small.recipe.globalBatch, 64);
  EXPECT_EQ(small.recipe.globalBatch % 4, 0);
  EXPECT_EQ(small.recipe.sequenceLength, 1024);
  EXPECT_TRUE(small.layers.empty());
  ASSERT_EQ(small.notKept.size(), 1u);
  EXPECT_EQ(small.notKept[0], "sizes of a graph, which its file fixes: only its batch is smaller");
}

TEST(ShrinkTest, ChunksOfTheLossOfOneTokenStayThat) {
  Shrunk two = shrink(modelOf(), recipeOf("adamw {} loss_chunks: 8"), planOf("dp=2"));
  EXPECT_EQ(two.recipe.lossChunks, 2);
  Shrunk each = shrink(modelOf(), recipeOf("adamw {} loss_chunks: 1024"), planOf("dp=2"));
  EXPECT_LT(each.recipe.sequenceLength, 1024);
  EXPECT_EQ(each.recipe.lossChunks, each.recipe.sequenceLength);
}

TEST(ShrinkTest, EveryChangeIsTold) {
  Shrunk small = shrunkOf("dp=2,tp=2");
  std::set<std::string> told;
  for (const Change &change : small.changes) {
    EXPECT_TRUE(told.insert(change.what).second) << change.what;
    EXPECT_NE(change.from, change.to);
  }
  for (const char *what : {"batch", "sequence_length", "precision", "steps", "layers", "hidden",
                           "head_size", "ffn", "vocabulary"}) {
    EXPECT_TRUE(told.count(what)) << what;
  }
}

} // namespace
