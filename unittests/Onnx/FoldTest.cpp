//===- FoldTest.cpp - arithmetic at compile time ----------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Folded.h"

using namespace weft::onnx;
using namespace weft::onnx::test;

TEST(Fold, OperandsAreSpreadOverOneAnother) {
  Constant column = reals({2, 1}, {10, 20}), row = reals({3}, {1, 2, 3});
  Constant sum = foldOne(makeNode("Add"), {column, row});
  EXPECT_EQ(sum.shape, Shape({2, 3}));
  EXPECT_EQ(sum.values, Numbers({11, 12, 13, 21, 22, 23}));
  Constant number = reals({}, {2});
  EXPECT_EQ(foldOne(makeNode("Sub"), {number, row}).values, Numbers({1, 0, -1}));
  EXPECT_EQ(errorOf(makeNode("Mul"), {row, reals({2}, {1, 2})}),
            "shapes [3] and [2] do not go together");
  EXPECT_EQ(errorOf(makeNode("Mul"), {row}), "expected 2 inputs");
}

TEST(Fold, WholeNumbersStayWholeAndComparisonsAreTruths) {
  EXPECT_EQ(foldOne(makeNode("Div"), {integers({7, -7}), integer(2)}).values, Numbers({3, -3}));
  EXPECT_EQ(foldOne(makeNode("Mod"), {integers({7, -7}), integer(3)}).values, Numbers({1, 2}));
  Constant less = foldOne(makeNode("Less"), {integers({1, 2, 3}), integer(2)});
  EXPECT_EQ(less.type, ElementType::Bool);
  EXPECT_EQ(less.values, Numbers({1, 0, 0}));
  EXPECT_EQ(foldOne(makeNode("Not"), {less}).values, Numbers({0, 1, 1}));
}

TEST(Fold, OfTheBatchOnlyProductsAreTaken) {
  Constant batch = integer(kBatch);
  EXPECT_EQ(foldOne(makeNode("Mul"), {batch, integer(12)}).values, Numbers({12 * kBatch}));
  Constant twelve = foldOne(makeNode("Mul"), {batch, integer(12)});
  EXPECT_EQ(foldOne(makeNode("Div"), {twelve, integer(4)}).values, Numbers({3 * kBatch}));
  EXPECT_EQ(foldOne(makeNode("Div"), {twelve, batch}).values, Numbers({12}));
  EXPECT_EQ(foldOne(makeNode("Equal"), {batch, batch}).values, Numbers({1}));
  const char *why = "only products can be taken of the batch, whose size is not known";
  EXPECT_EQ(errorOf(makeNode("Add"), {batch, integer(1)}), why);
  EXPECT_EQ(errorOf(makeNode("Less"), {batch, integer(1)}), why);
  EXPECT_EQ(errorOf(makeNode("Div"), {batch, integer(3)}), why);
}

TEST(Fold, CastsRoundAsTheirTypesDo) {
  constexpr int64_t kFloat = 1, kInt64 = 7, kHalf = 10, kBool = 9;
  Constant input = reals({3}, {-1.75, 0, 0.1});
  EXPECT_EQ(foldOne(makeNode("Cast", {{"to", kInt64}}), {input}).values, Numbers({-1, 0, 0}));
  EXPECT_EQ(foldOne(makeNode("Cast", {{"to", kBool}}), {input}).values, Numbers({1, 0, 1}));
  EXPECT_EQ(foldOne(makeNode("Cast", {{"to", kFloat}}), {input}).values[2], double(0.1f));
  EXPECT_EQ(errorOf(makeNode("Cast", {{"to", kHalf}}), {input}),
            "casts to an element type that is not supported");
}

TEST(Fold, MasksAndTables) {
  Constant ones = foldOne(makeNode("Expand"), {reals({}, {1}), integers({3, 3})});
  Constant lower = foldOne(makeNode("Trilu", {{"upper", int64_t(0)}}), {ones});
  EXPECT_EQ(lower.values, Numbers({1, 0, 0, 1, 1, 0, 1, 1, 1}));
  Constant upper = foldOne(makeNode("Trilu"), {ones, integer(1)});
  EXPECT_EQ(upper.values, Numbers({0, 1, 1, 0, 0, 1, 0, 0, 0}));
  Constant chosen = foldOne(makeNode("Where"), {lower, reals({}, {5}), reals({3}, {7, 8, 9})});
  EXPECT_EQ(chosen.values, Numbers({5, 8, 9, 5, 5, 9, 5, 5, 5}));
  EXPECT_EQ(foldOne(makeNode("Range"), {integer(1), integer(8), integer(3)}).values,
            Numbers({1, 4, 7}));
  Constant outer = foldOne(makeNode("Einsum", {{"equation", "i, j->ij"}}),
                           {reals({2}, {1, 2}), reals({2}, {3, 4})});
  EXPECT_EQ(outer.values, Numbers({3, 4, 6, 8}));
  Constant filled =
      foldOne(makeNode("ConstantOfShape", {{"value", integers({4})}}), {integers({2, 1})});
  EXPECT_EQ(filled.shape, Shape({2, 1}));
  EXPECT_EQ(filled.values, Numbers({4, 4}));
}

TEST(Fold, AlongTheBatchAConstantStaysOfLengthOne) {
  Constant spread = foldOne(makeNode("Expand"), {reals({}, {1}), integers({kBatch, 2})});
  EXPECT_EQ(spread.shape, Shape({1, 2}));
  EXPECT_EQ(errorOf(makeNode("ConstantOfShape"), {integers({kBatch})}),
            "makes a constant as long as the batch, whose size is not known");
  EXPECT_EQ(errorOf(makeNode("Range"), {integer(0), integer(kBatch), integer(1)}),
            "expected a range of known length");
}

TEST(Fold, WhatIsTooLargeIsRefused) {
  const char *why = "makes a constant of more than 2^26 elements";
  EXPECT_EQ(errorOf(makeNode("ConstantOfShape"), {integers({65536, 65536})}), why);
  EXPECT_EQ(errorOf(makeNode("Expand"), {reals({}, {1}), integers({0, 0x1p31, 0x1p31})}), why);
  EXPECT_EQ(errorOf(makeNode("ConstantOfShape"), {integers({-1})}),
            "expected lengths from 0 to 2^32, got -1.000000");
  EXPECT_EQ(errorOf(makeNode("Range"), {integer(0), integer(1), integer(0)}),
            "expected a range of known length");
}
