//===- FoldMovementTest.cpp - constants are cut, joined and turned ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Folded.h"

using namespace weft::onnx;
using namespace weft::onnx::test;

static const Constant six = reals({2, 3}, {1, 2, 3, 4, 5, 6});

TEST(FoldMovement, TransposeAndReshape) {
  Constant turned = foldOne(makeNode("Transpose"), {six});
  EXPECT_EQ(turned.shape, Shape({3, 2}));
  EXPECT_EQ(turned.values, Numbers({1, 4, 2, 5, 3, 6}));
  Constant cube = reals({2, 1, 3}, six.values);
  Constant moved = foldOne(makeNode("Transpose", {{"perm", Shape({1, 2, 0})}}), {cube});
  EXPECT_EQ(moved.shape, Shape({1, 3, 2}));
  EXPECT_EQ(moved.values, turned.values);
  EXPECT_EQ(errorOf(makeNode("Transpose", {{"perm", Shape({0, 0})}}), {six}),
            "expected a permutation of the dimensions");
  EXPECT_EQ(foldOne(makeNode("Reshape"), {six, integers({0, -1, 1})}).shape, Shape({2, 3, 1}));
  EXPECT_EQ(foldOne(makeNode("Flatten", {{"axis", int64_t(0)}}), {six}).shape, Shape({1, 6}));
  EXPECT_EQ(foldOne(makeNode("Unsqueeze"), {six, integers({-1, 0})}).shape, Shape({1, 2, 3, 1}));
  EXPECT_EQ(foldOne(makeNode("Squeeze"), {cube}).shape, Shape({2, 3}));
  EXPECT_EQ(errorOf(makeNode("Unsqueeze"), {six, integers({9})}), "has an axis out of range");
}

TEST(FoldMovement, GatherTakesRowsAlongAnAxis) {
  Constant columns = foldOne(makeNode("Gather", {{"axis", int64_t(1)}}), {six, integers({2, -3})});
  EXPECT_EQ(columns.shape, Shape({2, 2}));
  EXPECT_EQ(columns.values, Numbers({3, 1, 6, 4}));
  Constant row = foldOne(makeNode("Gather"), {six, integer(1)});
  EXPECT_EQ(row.shape, Shape({3}));
  EXPECT_EQ(row.values, Numbers({4, 5, 6}));
  EXPECT_EQ(errorOf(makeNode("Gather"), {six, integer(2)}), "index 2 lies outside of 2");
}

TEST(FoldMovement, ConcatAndSplitAreInverse) {
  Node split = makeNode("Split", {{"axis", int64_t(1)}}, 2);
  std::vector<Constant> parts = foldAll(split, {six, integers({1, 2})});
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].values, Numbers({1, 4}));
  EXPECT_EQ(parts[1].values, Numbers({2, 3, 5, 6}));
  Constant joined = foldOne(makeNode("Concat", {{"axis", int64_t(1)}}), parts);
  EXPECT_EQ(joined.shape, six.shape);
  EXPECT_EQ(joined.values, six.values);
  EXPECT_EQ(errorOf(makeNode("Concat", {{"axis", int64_t(0)}}), parts),
            "expected inputs that differ only along the axis");
  EXPECT_EQ(errorOf(split, {six, integers({1, 1})}), "the parts do not make up the length 3");
}

TEST(FoldMovement, SliceBeginsAnywhereAndSteps) {
  Constant part = foldOne(makeNode("Slice"), {six, integers({-1, 0}), integers({9, 3}),
                                              integers({0, 1}), integers({1, 2})});
  EXPECT_EQ(part.shape, Shape({1, 2}));
  EXPECT_EQ(part.values, Numbers({4, 6}));
  EXPECT_EQ(errorOf(makeNode("Slice"),
                    {six, integers({0}), integers({3}), integers({0}), integers({-1})}),
            "expected steps of at least 1, got -1");
}

TEST(FoldMovement, ShapeTakesARange) {
  EXPECT_EQ(foldOne(makeNode("Shape"), {six}).values, Numbers({2, 3}));
  EXPECT_EQ(foldOne(makeNode("Shape", {{"start", int64_t(-1)}}), {six}).values, Numbers({3}));
}

TEST(FoldMovement, WhatIsTooLargeIsRefused) {
  const char *why = "makes a constant of more than 2^26 elements";
  Constant wide = foldOne(makeNode("ConstantOfShape"), {integers({1, 1 << 14})});
  Constant rows =
      foldOne(makeNode("ConstantOfShape", {{"value", integers({0})}}), {integers({1 << 14})});
  EXPECT_EQ(errorOf(makeNode("Gather"), {wide, rows}), why);
  EXPECT_EQ(errorOf(makeNode("Split", {{"num_outputs", int64_t(1 << 20)}}), {rows}),
            "makes more than 1024 parts");
}
