//===- RegionsTest.cpp - which summands each rank has ----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Regions.h"

#include <gtest/gtest.h>

using namespace weft::meaning;

TEST(Regions, NeighboursAreOneBox) {
  Regions regions;
  uint32_t all = regions.box({{0, 4}});
  EXPECT_EQ(regions.join({regions.box({{0, 2}}), regions.box({{2, 4}})}, true), all);
  EXPECT_EQ(regions.join({regions.box({{2, 4}}), regions.box({{0, 2}})}, true), all);
  EXPECT_NE(regions.join({regions.box({{0, 1}}), regions.box({{2, 4}})}, true), all);
}

TEST(Regions, BoxesOfSeveralIndicesJoinInAnyOrder) {
  Regions regions;
  uint32_t all = regions.box({{0, 4}, {0, 6}});
  uint32_t left = regions.product(regions.box({{0, 2}}), regions.box({{0, 6}}));
  uint32_t upper = regions.product(regions.box({{2, 4}}), regions.box({{0, 3}}));
  uint32_t lower = regions.product(regions.box({{2, 4}}), regions.box({{3, 6}}));
  EXPECT_EQ(regions.join({upper, left, lower}, true), all);
  EXPECT_EQ(regions.join({*regions.join({left, lower}, true), upper}, true), all);
}

TEST(Regions, ASumCountsNothingTwice) {
  Regions regions;
  uint32_t few = regions.box({{0, 2}}), more = regions.box({{1, 4}});
  EXPECT_FALSE(regions.join({few, more}, true));
  EXPECT_FALSE(regions.join({few, few}, true));
}

TEST(Regions, AMaximumMayTakeAnElementTwice) {
  Regions regions;
  uint32_t few = regions.box({{0, 2}}), all = regions.box({{0, 4}});
  EXPECT_EQ(regions.join({few, few}, false), few);
  EXPECT_EQ(regions.join({few, all, few}, false), all);
}

TEST(Regions, WhatIsEmptyAddsNothing) {
  Regions regions;
  uint32_t few = regions.box({{0, 2}});
  EXPECT_EQ(regions.box({{3, 3}}), regions.empty(1));
  EXPECT_EQ(regions.join({few, regions.empty(1)}, true), few);
  EXPECT_EQ(regions.product(few, regions.empty(1)), regions.empty(2));
}
