//===- InterpolationTest.cpp - between measured points ----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Cost/Interpolation.h"

#include <gtest/gtest.h>

using namespace weft::cost;

namespace {

TEST(Interpolation, OfPointsIsExactAtThem) {
  const Point points[] = {{1000, 5}, {10, 1}, {100, 8}};
  EXPECT_DOUBLE_EQ(interpolate(points, 10), 1);
  EXPECT_DOUBLE_EQ(interpolate(points, 100), 8);
  EXPECT_DOUBLE_EQ(interpolate(points, 1000), 5);
}

TEST(Interpolation, OfPointsIsAPowerLawBetween) {
  // y = x^1.5 is a straight line in logarithms.
  const Point points[] = {{1, 1}, {100, 1000}};
  EXPECT_NEAR(interpolate(points, 4), 8, 1e-12);
  EXPECT_NEAR(interpolate(points, 25), 125, 1e-9);
}

TEST(Interpolation, OfPointsEndsAtTheEnds) {
  const Point points[] = {{10, 3}, {100, 7}};
  EXPECT_EQ(interpolate(points, 1), 3);
  EXPECT_EQ(interpolate(points, 1e9), 7);
  const Point single[] = {{10, 3}};
  EXPECT_EQ(interpolate(single, 500), 3);
}

TEST(Interpolation, OfShapesIsExactAtThem) {
  const ShapePoint points[] = {{{64, 64, 64}, 10}, {{256, 256, 256}, 40}, {{64, 256, 64}, 20}};
  EXPECT_EQ(interpolate(points, {64, 64, 64}), 10);
  EXPECT_EQ(interpolate(points, {64, 256, 64}), 20);
}

TEST(Interpolation, OfShapesFollowsTheNearest) {
  const ShapePoint points[] = {{{64, 64, 64}, 10}, {{1024, 1024, 1024}, 40}};
  // Half way in logarithms the weights are equal: the geometric mean.
  EXPECT_NEAR(interpolate(points, {256, 256, 256}), 20, 1e-9);
  EXPECT_LT(interpolate(points, {128, 128, 128}), 14);
  EXPECT_GT(interpolate(points, {512, 512, 512}), 28);
  // Far away all points are equally far.
  double far = interpolate(points, {1e9, 1e9, 1e9});
  EXPECT_GT(far, 10);
  EXPECT_LT(far, 40);
}

} // namespace
