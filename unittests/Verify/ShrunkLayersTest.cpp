//===- ShrunkLayersTest.cpp - tests of small models in pipeline stages ----===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Description/Pins.h"
#include "weft/Verify/Shrink.h"

#include <gtest/gtest.h>

using namespace weft;
using namespace weft::verify;

namespace {

using Numbers = std::vector<int64_t>;

/// Shrinks a model of `layers` layers; `more` are lines of its description.
Shrunk shrunkOf(const desc::PlanSpec &plan, int64_t layers = 12, const std::string &more = "") {
  auto model = desc::parseModel("version: 1 name: \"m\" layers: " + std::to_string(layers) + R"(
    hidden: 768 heads: 16 kv_heads: 8 head_size: 64 ffn: 2048 norm: RMS_NORM activation: SWIGLU
    positions: ROTARY vocabulary: 50257 )" +
                                more);
  auto recipe = desc::parseRecipe(R"(version: 1 sequence_length: 1024 global_batch_sequences: 64
    schedule { peak_learning_rate: 1e-3 warmup_steps: 100 } steps: 1000 adamw {} )");
  return shrink(*model, *recipe, plan);
}

desc::PlanSpec pinned(const std::string &pins) { return *desc::applyPins({pins}); }

desc::PlanSpec planOf(const std::string &lines) {
  return *desc::parsePlan("version: 1 accumulation: 16 " + lines);
}

std::string changeOf(const Shrunk &small, const std::string &what) {
  for (const Change &change : small.changes) {
    if (change.what == what) {
      return change.from + " -> " + change.to;
    }
  }
  return "";
}

TEST(ShrunkLayersTest, StagesHaveTheirEnds) {
  Shrunk small = shrunkOf(pinned("pp=2,accumulation=8"));
  EXPECT_EQ(small.layers, (Numbers{0, 5, 6, 11}));
  EXPECT_EQ(small.plan.pipeline.layers, (Numbers{2, 2}));
  EXPECT_EQ(small.plan.pipeline.stages, 2);
  EXPECT_EQ(changeOf(small, "layers of stages"), "6, 6 -> 2, 2");
  EXPECT_TRUE(small.notKept.empty());
  EXPECT_EQ(shrunkOf(pinned("pp=12,accumulation=8")).plan.pipeline.layers, Numbers(12, 1));
}

TEST(ShrunkLayersTest, StagesOfNoLayersStay) {
  Shrunk small = shrunkOf(planOf("pipeline { layers: [0, 6, 6, 0] }"));
  EXPECT_EQ(small.layers, (Numbers{0, 5, 6, 11}));
  EXPECT_EQ(small.plan.pipeline.layers, (Numbers{0, 2, 2, 0}));
  EXPECT_EQ(shrunkOf(planOf("pipeline { layers: [0, 12] }")).plan.pipeline.layers, (Numbers{0, 2}));
}

TEST(ShrunkLayersTest, LongerStagesStayLonger) {
  Shrunk small = shrunkOf(planOf("pipeline { layers: [5, 4, 3] }"));
  EXPECT_EQ(small.plan.pipeline.layers, (Numbers{4, 3, 2}));
  EXPECT_EQ(small.layers, (Numbers{0, 1, 2, 4, 5, 6, 8, 9, 11}));
  EXPECT_EQ(shrunkOf(planOf("pipeline { layers: [1, 2, 9] }")).plan.pipeline.layers,
            (Numbers{1, 2, 3}));
  // The first stages have the layers that are left.
  EXPECT_EQ(shrunkOf(planOf("pipeline { stages: 5 }")).plan.pipeline.layers,
            (Numbers{3, 3, 2, 2, 2}));
}

TEST(ShrunkLayersTest, StagesHaveALayerOfEachKind) {
  const std::string experts = "experts { experts: 64 experts_per_token: 6 ";
  Shrunk small = shrunkOf(pinned("pp=2,accumulation=8"), 12, experts + "first_layer: 1 }");
  EXPECT_EQ(small.layers, (Numbers{0, 5, 6, 11}));
  EXPECT_EQ(small.model.experts->firstLayer, 1);
  // The second stage has as many layers as the first, which needs three: two ends without experts.
  small = shrunkOf(pinned("pp=2,accumulation=8"), 10, experts + "layer_period: 2 }");
  EXPECT_EQ(small.layers, (Numbers{0, 1, 4, 5, 6, 9}));
  EXPECT_EQ(small.model.experts->layerPeriod, 2);
  small =
      shrunkOf(planOf("pipeline { stages: 2 } activation { last_layer: 2 saving: RECOMPUTED }"));
  EXPECT_EQ(small.layers, (Numbers{0, 5, 6, 11}));
  ASSERT_EQ(small.plan.activations.size(), 1u);
  EXPECT_EQ(small.plan.activations[0].layers.last, 0);
}

TEST(ShrunkLayersTest, AllLayersStayWhereExpertsNeedThem) {
  // Every third layer has experts, and each stage four layers: two or three of them would stand in
  // no regular order.
  Shrunk small = shrunkOf(pinned("pp=3,accumulation=8"), 12,
                          "experts { experts: 64 experts_per_token: 6 layer_period: 3 }");
  EXPECT_EQ(small.model.layers, 12);
  EXPECT_EQ(small.plan.pipeline.layers, (Numbers{4, 4, 4}));
  EXPECT_EQ(small.model.experts->layerPeriod, 3);
}

TEST(ShrunkLayersTest, SixteenRanksAreThoseOfAllStages) {
  Shrunk small = shrunkOf(pinned("dp=8,tp=2,pp=4,accumulation=8"));
  EXPECT_EQ(small.plan.ranks(), 16);
  EXPECT_EQ(small.plan.pipeline.stages, 4);
  // Two more micro-batches than stages, so that the first stage keeps some where it kept others.
  EXPECT_EQ(small.plan.accumulation, 6);
  EXPECT_EQ(shrunkOf(pinned("pp=4,accumulation=2")).plan.accumulation, 2);
  EXPECT_EQ(shrunkOf(pinned("pp=2,accumulation=8")).plan.accumulation, 4);
  small = shrunkOf(pinned("pp=20,accumulation=2"), 20);
  EXPECT_EQ(small.plan.ranks(), 20);
  ASSERT_FALSE(small.notKept.empty());
  EXPECT_EQ(small.notKept[0], "at most 16 ranks: no stage is left out");
}

} // namespace
