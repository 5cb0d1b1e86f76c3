//===- ExpertSlotsTest.cpp - tests of the room that an expert has ---------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Description/ExpertSlots.h"

#include <gtest/gtest.h>

using namespace weft::desc;

namespace {

class ExpertSlotsTest : public testing::Test {
protected:
  ExpertSlotsTest() {
    experts.count = 16;
    experts.perToken = 3;
    recipe.sequenceLength = 40;
    recipe.globalBatch = 4;
  }
  ExpertsSpec experts;
  RecipeSpec recipe;
};

TEST_F(ExpertSlotsTest, WithoutFactorsAnExpertHasRoomForASequence) {
  EXPECT_EQ(evenShare(experts, 40), 7.5); // 40 * 3 / 16
  EXPECT_EQ(slotsOf(experts, recipe), 40);
}

TEST_F(ExpertSlotsTest, FactorsAreRoundedUp) {
  recipe.routing.capacityFactor = 1.25;
  EXPECT_EQ(slotsOf(experts, recipe), 10); // 9.375
  EXPECT_EQ(bufferOf(experts, recipe), 40);
  recipe.routing.capacityFactor.reset();
  recipe.routing.bufferFactor = 0.8; // 6, but for rounding errors.
  EXPECT_EQ(slotsOf(experts, recipe), 6);
}

TEST_F(ExpertSlotsTest, NoSequenceFillsMoreThanItsTokens) {
  recipe.routing.bufferFactor = 8;
  EXPECT_EQ(slotsOf(experts, recipe), 40);
  recipe.routing.bufferFactor.reset();
  recipe.routing.capacityFactor = 2;
  recipe.routing.capacityGroup = RoutingGroup::GlobalBatch;
  EXPECT_EQ(capacityOf(experts, recipe), 60); // 2 * 160 * 3 / 16
  EXPECT_EQ(slotsOf(experts, recipe), 40);
}

} // namespace
