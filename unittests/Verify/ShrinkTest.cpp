//===- ShrinkTest.cpp - tests of small models that are split as large ones ===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Verify/Shrink.h"
#include "weft/Description/Pins.h"

#include <gtest/gtest.h>

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
  for (const Shrunk &small : {first, period}) {
    desc::ModelSpec model = modelOf(
        small.layers.size() == 3 ? "experts { experts: 64 experts_per_token: 6 first_layer: 1 }"
                                 : "experts { experts: 64 experts_per_token: 6 layer_period: 3 }");
    for (size_t i = 0; i < small.layers.size(); ++i) {
      EXPECT_EQ(small.model.hasExperts(int64_t(i)), model.hasExperts(small.layers[i]));
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

TEST(ShrinkTest, WindowsStayShorterThanSequences) {
  Shrunk small = shrunkOf("dp=2", "attention_window: 256");
  EXPECT_LT(small.model.attentionWindow, small.recipe.sequenceLength);
  EXPECT_GT(small.model.attentionWindow, 1);
  small = shrunkOf("dp=2", "attention_window: 4096");
  EXPECT_GE(small.model.attentionWindow, small.recipe.sequenceLength);
}

TEST(ShrinkTest, PiecesOfSequencesKeepTheirHalves) {
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
  EXPECT_EQ(small.notKept[0], "sizes of a graph stand in its file: only its batch is smaller");
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
