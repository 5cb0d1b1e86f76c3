//===- SlicesTest.cpp - tests of ONNX's shapes and slices -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Onnx/Slices.h"

#include "Folded.h"

#include <cmath>

using namespace weft::onnx;
using namespace weft::onnx::test;

static std::optional<Numbers> reshaped(const Numbers &lengths, const Numbers &asked,
                                       bool allowZero = false) {
  weft::rt::Result<Numbers> result = reshapedLengths(lengths, asked, allowZero);
  return result ? std::optional(*result) : std::nullopt;
}

TEST(Slices, ReshapeKeepsTheBatchASymbol) {
  EXPECT_EQ(reshaped({kBatch, 12}, {0, 3, -1}), Numbers({kBatch, 3, 4}));
  EXPECT_EQ(reshaped({kBatch, 12}, {-1, 4}), Numbers({3 * kBatch, 4}));
  EXPECT_EQ(reshaped({3 * kBatch, 4}, {kBatch, 12}), Numbers({kBatch, 12}));
  EXPECT_FALSE(reshaped({kBatch, 12}, {-1, 5}));
  EXPECT_FALSE(reshaped({kBatch, 12}, {-1, -1}));
  EXPECT_FALSE(reshaped({4}, {-2, -2}));
  EXPECT_FALSE(reshaped({4, 1}, {0, 1}, /*allowZero=*/true));
  EXPECT_FALSE(reshaped({4}, {NAN}));
}

TEST(Slices, NoProductOfAReasonableShapeOverflows) {
  EXPECT_TRUE(isReasonable({}));
  EXPECT_TRUE(isReasonable({1 << 20, 0, 1 << 20}));
  EXPECT_FALSE(isReasonable({0, int64_t(1) << 32, int64_t(1) << 32}));
  EXPECT_FALSE(isReasonable({int64_t(1) << 32, int64_t(1) << 32, 0}));
  EXPECT_FALSE(isReasonable({-1}));
  EXPECT_FALSE(isReasonable(Shape(17, 1)));
}

TEST(Slices, BoundsAreCountedFromTheEndAndCut) {
  weft::rt::Result<Slices> slices =
      slicesOf({10, 7}, {-4, 1}, {int64_t(1) << 53, -1}, std::nullopt, Shape({1, 2}));
  ASSERT_TRUE(slices) << slices.error().message;
  EXPECT_EQ(slices->shape, Shape({4, 3}));
  EXPECT_EQ(slices->offsets, Shape({6, 1}));
  EXPECT_EQ(slices->strides, Shape({1, 2}));
  slices = slicesOf({10}, {5}, {2}, std::nullopt, std::nullopt);
  ASSERT_TRUE(slices) << slices.error().message;
  EXPECT_EQ(slices->shape, Shape({0}));
  slices = slicesOf({10}, {0, 1}, {2}, std::nullopt, std::nullopt);
  ASSERT_FALSE(slices);
  EXPECT_EQ(slices.error().message, "expected equally many starts, ends, axes and steps");
  slices = slicesOf({10}, {0}, {2}, Shape({1}), std::nullopt);
  ASSERT_FALSE(slices);
  EXPECT_EQ(slices.error().message, "has an axis out of range");
}

TEST(Slices, SplitsAreEvenButForTheLast) {
  weft::rt::Result<Shape> lengths = splitLengths(makeNode("Split", {}, 3), std::nullopt, 8);
  ASSERT_TRUE(lengths) << lengths.error().message;
  EXPECT_EQ(*lengths, Shape({3, 3, 2}));
  EXPECT_FALSE(splitLengths(makeNode("Split"), Shape({4, 5}), 8));
  EXPECT_FALSE(splitLengths(makeNode("Split"), Shape({9, -1}), 8));
}

TEST(Slices, AxesAndPermutations) {
  EXPECT_EQ(axisOf(-1, 3), 2);
  EXPECT_EQ(axisOf(3, 3), std::nullopt);
  EXPECT_EQ(axisOf(-4, 3), std::nullopt);
  std::vector<bool> isNew;
  ASSERT_TRUE(newAxes({0, -1}, 1, isNew));
  EXPECT_EQ(isNew, std::vector<bool>({true, false, true}));
  EXPECT_FALSE(newAxes({0, 0}, 1, isNew));
  Shape order;
  ASSERT_TRUE(permutationOf(makeNode("Transpose"), 3, order));
  EXPECT_EQ(order, Shape({2, 1, 0}));
  EXPECT_FALSE(permutationOf(makeNode("Transpose", {{"perm", Shape({1, 0})}}), 3, order));
  EXPECT_EQ(clampedInteger(1e300), int64_t(1) << 53);
  EXPECT_EQ(clampedInteger(NAN), 0);
}
