//===- OptimizerTest.cpp - what an optimizer needs ------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Description/Optimizer.h"

#include <gtest/gtest.h>

using namespace weft::desc;

namespace {

TEST(Optimizer, IsNamedAsInARecipe) {
  EXPECT_EQ(nameOf(AdamWSpec()), "adamw");
  EXPECT_EQ(nameOf(SgdSpec()), "sgd");
  EXPECT_EQ(nameOf(MuonSpec()), "muon");
}

TEST(Optimizer, UpdatesElementsOrMatrices) {
  EXPECT_FALSE(updatesMatrices(AdamWSpec()));
  EXPECT_FALSE(updatesMatrices(SgdSpec()));
  EXPECT_TRUE(updatesMatrices(MuonSpec()));
  EXPECT_EQ(elementwiseOptimizers(), "adamw or sgd");
}

TEST(Optimizer, KeepsStates) {
  EXPECT_EQ(fewestStates(AdamWSpec()), 2);
  EXPECT_EQ(fewestStates(SgdSpec()), 0);
  EXPECT_EQ(fewestStates(SgdSpec{.momentum = 0.9}), 1);
  EXPECT_EQ(fewestStates(MuonSpec()), 1);
}

TEST(Optimizer, MayNormalizeUpdates) {
  EXPECT_TRUE(normalizesUpdates(AdamWSpec()));
  EXPECT_FALSE(normalizesUpdates(SgdSpec()));
  EXPECT_TRUE(normalizesUpdates(MuonSpec()));
  for (OptimizerSpec optimizer : {OptimizerSpec(AdamWSpec()), OptimizerSpec(MuonSpec())}) {
    ASSERT_NE(epsilonOf(optimizer), nullptr);
    EXPECT_EQ(*epsilonOf(optimizer), 1e-8);
  }
  OptimizerSpec sgd = SgdSpec();
  EXPECT_EQ(epsilonOf(sgd), nullptr);
}

} // namespace
