//===- PipelinePriceTest.cpp - schedules of priced actions ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Pipeline/Plan/PipelinePrice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace weft;
using testing::ElementsAre;

namespace {

/// Chunks, one after the other in `stages` stages: forward takes 1 s, backward 2 s.
PipelinePrice makePrice(int64_t stages, int64_t chunks) {
  PipelinePrice price;
  for (int64_t chunk = 0; chunk < stages * chunks; ++chunk) {
    price.chunks.push_back({chunk % stages, {1, 10}, {2, 20}, 100});
  }
  price.stages.resize(size_t(stages), {0, 1000});
  return price;
}

PipelineEstimate estimate(const PipelinePrice &price, const std::string &name, int64_t chunks,
                          int64_t microBatches) {
  auto schedule = desc::makeSchedule(name, int64_t(price.stages.size()), chunks, microBatches);
  auto estimate = estimatePipeline(price, *schedule, microBatches);
  EXPECT_TRUE(std::holds_alternative<PipelineEstimate>(estimate));
  return std::get<PipelineEstimate>(estimate);
}

TEST(PipelinePrice, OfEqualStagesHasTheBubbleOfTheClosedForm) {
  for (const char *name : {"1f1b", "gpipe"}) {
    for (int64_t microBatches : {4, 16}) {
      PipelineEstimate got = estimate(makePrice(4, 1), name, 1, microBatches);
      EXPECT_DOUBLE_EQ(got.seconds, 3.0 * double(microBatches + 3));
      EXPECT_NEAR(got.bubble, 3.0 / double(microBatches + 3), 1e-12);
    }
  }
  PipelineEstimate interleaved = estimate(makePrice(4, 2), "1f1b", 2, 16);
  EXPECT_NEAR(interleaved.bubble, 3.0 / (2 * 16 + 3), 1e-12);
}

TEST(PipelinePrice, HoldsWhatMicroBatchesInFlightKeep) {
  EXPECT_THAT(
      estimate(makePrice(4, 1), "1f1b", 1, 16).peakBytes,
      ElementsAre(1000 + 4 * 100 + 20, 1000 + 3 * 100 + 20, 1000 + 2 * 100 + 20, 1000 + 100 + 20));
  EXPECT_THAT(estimate(makePrice(2, 1), "gpipe", 1, 16).peakBytes,
              ElementsAre(1000 + 16 * 100 + 20, 1000 + 16 * 100 + 20));
}

/// In stage s gradients of weights wait for s micro-batches, and need 60 bytes of each.
TEST(PipelinePrice, HoldsWhatWeightGradientsNeed) {
  PipelinePrice price = makePrice(4, 1);
  for (ChunkPrice &chunk : price.chunks) {
    chunk.inputGradients = {1, 20};
    chunk.weightGradients = {1, 5};
    chunk.keptForWeightsBytes = 60;
  }
  PipelineEstimate got = estimate(price, "zbh1", 1, 16);
  EXPECT_DOUBLE_EQ(got.seconds, 3.0 * 16 + 3);
  EXPECT_THAT(got.peakBytes, ElementsAre(1000 + 4 * 100 + 20, 1000 + 3 * 100 + 60 + 20,
                                         1000 + 2 * 100 + 2 * 60 + 20, 1000 + 100 + 3 * 60 + 20));
}

TEST(PipelinePrice, AddsWhatIsDoneOnceInAStep) {
  PipelinePrice price = makePrice(2, 1);
  price.stages[0].onceSeconds = 1; // Stage 0 ends last.
  price.stages[1].onceSeconds = 2.5;
  PipelineEstimate got = estimate(price, "1f1b", 1, 4);
  EXPECT_DOUBLE_EQ(got.seconds, 3 * 5 + 1);
  EXPECT_NEAR(got.bubble, 1 - (12 + 1 + 12 + 2.5) / (2 * 16), 1e-12);
}

TEST(PipelinePrice, OfASlowStageMakesOthersWait) {
  PipelinePrice price = makePrice(2, 1);
  price.chunks[1].forward.seconds = 2;
  price.chunks[1].backward.seconds = 4;
  EXPECT_DOUBLE_EQ(estimate(price, "1f1b", 1, 8).seconds, 1 + 6 * 8 + 2);
}

TEST(PipelinePrice, RefusesAScheduleWithAFault) {
  auto schedule = desc::makeOneForwardOneBackward(2, 1, 4);
  schedule[0].pop_back();
  auto got = estimatePipeline(makePrice(2, 1), schedule, 4);
  ASSERT_TRUE(std::holds_alternative<desc::ScheduleFault>(got));
  EXPECT_NE(std::get<desc::ScheduleFault>(got).text, "");
}

} // namespace
