//===- OpCostTest.cpp - operations and bytes of ops ------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Parsed.h"

#include <gtest/gtest.h>

using namespace weft;
using namespace weft::test;

namespace {

void expectCost(const std::string &arguments, const std::string &op, BatchPolynomial flops,
                BatchPolynomial bytes) {
  Parsed parsed(arguments, op);
  OpCost cost = costOf(parsed.shardable());
  EXPECT_DOUBLE_EQ(cost.flops.constant, flops.constant) << op;
  EXPECT_DOUBLE_EQ(cost.flops.perSample, flops.perSample) << op;
  EXPECT_DOUBLE_EQ(cost.bytes.constant, bytes.constant) << op;
  EXPECT_DOUBLE_EQ(cost.bytes.perSample, bytes.perSample) << op;
}

TEST(OpCost, ElementCountIsLinearInTheBatch) {
  EXPECT_DOUBLE_EQ(elementCount({2, 3}).at(10), 6);
  EXPECT_DOUBLE_EQ(elementCount({mlir::ShapedType::kDynamic, 3}).at(10), 30);
  EXPECT_DOUBLE_EQ(elementCount({}, 4).at(10), 4);
}

TEST(OpCost, Matmul) {
  // A multiply-add for each of batch * 4 * 8 * 16 points; x and y grow with the batch, w does not.
  expectCost("%x: tensor<?x4x8xf32>, %w: tensor<16x8xf32>",
             R"(%0 = weft.contract "bsk,nk->bsn" (%x, %w)
                : (tensor<?x4x8xf32>, tensor<16x8xf32>) -> tensor<?x4x16xf32>)",
             {0, 2 * 4 * 8 * 16}, {4 * 16 * 8, 4 * (4 * 8 + 4 * 16)});
}

TEST(OpCost, GradientOfAWeight) {
  // The batch is summed away, but each sample costs.
  expectCost("%x: tensor<?x8xf64>, %y: tensor<?x16xf64>",
             R"(%0 = weft.contract "bk,bn->nk" (%x, %y)
                : (tensor<?x8xf64>, tensor<?x16xf64>) -> tensor<16x8xf64>)",
             {0, 2 * 8 * 16}, {8 * 16 * 8, 8 * (8 + 16)});
}

TEST(OpCost, PlainSum) {
  expectCost("%x: tensor<4x8xf32>",
             R"(%0 = weft.contract "ab->b" (%x) : (tensor<4x8xf32>) -> tensor<8xf32>)", {32, 0},
             {4 * (32 + 8), 0});
}

TEST(OpCost, ASumOfSquaresReadsItsOperandOnce) {
  expectCost("%x: tensor<4x8xf32>",
             R"(%0 = weft.contract "ab,ab->" (%x, %x)
                : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<f32>)",
             {2 * 32, 0}, {4 * (32 + 1), 0});
}

TEST(OpCost, MapCountsItsScalarOps) {
  // An addition, an exponential of ten, and a constant for nothing.
  expectCost("%x: tensor<?x8xf32>",
             R"(%0 = weft.map ins(%x : tensor<?x8xf32>) maps [affine_map<(i, j) -> (i, j)>]
                -> tensor<?x8xf32> {
                ^bb0(%a: f32):
                  %c = arith.constant 1.0 : f32
                  %b = arith.addf %a, %c : f32
                  %d = math.exp %b : f32
                  weft.yield %d : f32
                })",
             {0, 8 * 11}, {0, 4 * 2 * 8});
}

TEST(OpCost, AttentionIsHalfOfTwoMatmuls) {
  // Each of 2 matmuls: 2 * queries * keys * features for each of 2 * 3 heads, halved by causality.
  expectCost("%q: tensor<?x4x2x3x8xf32>, %k: tensor<?x4x2x8xf32>, "
             "%v: tensor<?x4x2x8xf32>",
             R"(%0:2 = weft.attention(%q, %k, %v) scale = 1.0 dropout = 0.0
                : tensor<?x4x2x3x8xf32>, tensor<?x4x2x8xf32>, tensor<?x4x2x8xf32>
                -> tensor<?x4x2x3x8xf32>, tensor<?x2x3x4xf32>)",
             {0, 2 * 2 * 4 * 4 * 8 * 2 * 3 / 2}, {0, 4 * (2 * 192 + 2 * 64 + 24)});
}

TEST(OpCost, AttentionInAWindowIsLess) {
  // Queries see 1, 2, 2 and 2 keys, of which half a key each is the diagonal's share: 2 * (4 - 1).
  expectCost("%q: tensor<?x4x2x3x8xf32>, %k: tensor<?x4x2x8xf32>, "
             "%v: tensor<?x4x2x8xf32>",
             R"(%0:2 = weft.attention(%q, %k, %v) scale = 1.0 dropout = 0.0 window = 2
                : tensor<?x4x2x3x8xf32>, tensor<?x4x2x8xf32>, tensor<?x4x2x8xf32>
                -> tensor<?x4x2x3x8xf32>, tensor<?x2x3x4xf32>)",
             {0, 2 * 2 * (4 * 4 - 2 * 2) * 8 * 2 * 3 / 2}, {0, 4 * (2 * 192 + 2 * 64 + 24)});
}

TEST(OpCost, BidirectionalAttentionIsTwoMatmuls) {
  expectCost("%q: tensor<?x4x2x3x8xf32>, %k: tensor<?x4x2x8xf32>, "
             "%v: tensor<?x4x2x8xf32>",
             R"(%0:2 = weft.attention(%q, %k, %v) scale = 1.0 dropout = 0.0 bidirectional
                : tensor<?x4x2x3x8xf32>, tensor<?x4x2x8xf32>, tensor<?x4x2x8xf32>
                -> tensor<?x4x2x3x8xf32>, tensor<?x2x3x4xf32>)",
             {0, 2 * 2 * 4 * 4 * 8 * 2 * 3}, {0, 4 * (2 * 192 + 2 * 64 + 24)});
}

/// Expects the costs that an op states, per sample.
void expectFlops(const std::string &arguments, const std::string &op, double done, double asked) {
  Parsed parsed(arguments, op);
  OpCost cost = costOf(parsed.shardable());
  EXPECT_DOUBLE_EQ(cost.flops.perSample, done) << op;
  EXPECT_DOUBLE_EQ(cost.modelFlops.perSample, asked) << op;
  EXPECT_DOUBLE_EQ(cost.modelFlops.constant, 0) << op;
}

TEST(OpCost, ScoresThatAreComputedAgainAreNotAskedFor) {
  // Each matmul: 2 * queries * keys for each of 2 * 3 heads, halved by causality. Three of the
  // gradient's five, of which one gives scores, are by 8 elements of a key, two by 4 of a value.
  const double half = 2 * 4 * 4 * 2 * 3 / 2.0;
  std::string arguments = "%q: tensor<?x4x2x3x8xf32>, %k: tensor<?x4x2x8xf32>, "
                          "%v: tensor<?x4x2x4xf32>, %o: tensor<?x4x2x3x4xf32>, "
                          "%l: tensor<?x2x3x4xf32>";
  expectFlops(arguments,
              R"(%0:2 = weft.attention(%q, %k, %v) scale = 1.0 dropout = 0.0
                : tensor<?x4x2x3x8xf32>, tensor<?x4x2x8xf32>, tensor<?x4x2x4xf32>
                -> tensor<?x4x2x3x4xf32>, tensor<?x2x3x4xf32>)",
              half * (8 + 4), half * (8 + 4));
  expectFlops(arguments,
              R"(%0:3 = weft.attention_grad(%q, %k, %v) output(%o, %l) gradient(%o)
                scale = 1.0 dropout = 0.0
                : tensor<?x4x2x3x8xf32>, tensor<?x4x2x8xf32>, tensor<?x4x2x4xf32>,
                  tensor<?x4x2x3x4xf32>, tensor<?x2x3x4xf32>, tensor<?x4x2x3x4xf32>
                -> tensor<?x4x2x3x8xf32>, tensor<?x4x2x8xf32>, tensor<?x4x2x4xf32>)",
              half * (3 * 8 + 2 * 4), half * (2 * 8 + 2 * 4));
}

TEST(OpCost, ModelsAskForMatmuls) {
  std::string matmul = R"(%0 = weft.contract "bsk,nk->bsn" (%x, %w)
      : (tensor<?x4x8xf32>, tensor<16x8xf32>) -> tensor<?x4x16xf32>)";
  expectFlops("%x: tensor<?x4x8xf32>, %w: tensor<16x8xf32>", matmul, 2 * 4 * 8 * 16,
              2 * 4 * 8 * 16);
  std::string sum = R"(%0 = weft.contract "bk->k" (%x) : (tensor<?x8xf32>) -> tensor<8xf32>)";
  expectFlops("%x: tensor<?x8xf32>", sum, 8, 0);
  std::string squares =
      R"(%0 = weft.contract "bk,bk->" (%x, %x)
      : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<f32>)";
  expectFlops("%x: tensor<?x8xf32>", squares, 2 * 8, 0);
  std::string tilesOfColumns = R"(%0 = weft.contract "bk,bk->k" (%x, %x)
      : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<8xf32>)";
  expectFlops("%x: tensor<?x8xf32>", tilesOfColumns, 2 * 8, 0);
  std::string scaled = R"(%0 = weft.contract "bk,k->bk" (%x, %s)
      : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>)";
  expectFlops("%x: tensor<?x8xf32>, %s: tensor<8xf32>", scaled, 2 * 8, 0);
  std::string byVector = R"(%0 = weft.contract "bk,k->b" (%x, %s)
      : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?xf32>)";
  expectFlops("%x: tensor<?x8xf32>, %s: tensor<8xf32>", byVector, 2 * 8, 2 * 8);
  std::string norm = R"(%0 = weft.norm rms %x scale(%s : tensor<8xf32>) epsilon = 1.0e-5
      : tensor<?x8xf32> -> tensor<?x8xf32>)";
  expectFlops("%x: tensor<?x8xf32>, %s: tensor<8xf32>", norm, 7 * 8, 0);
  std::string convolution = R"(%0 = weft.convolution %a by %b strides [1, 1] low [0, 0] high [0, 0]
      dilations [1, 1] : tensor<?x4x5x5xf32>, tensor<6x4x3x3xf32> -> tensor<?x6x3x3xf32>)";
  expectFlops("%a: tensor<?x4x5x5xf32>, %b: tensor<6x4x3x3xf32>", convolution,
              2 * (6 * 3 * 3) * (4 * 3 * 3), 2 * (6 * 3 * 3) * (4 * 3 * 3));
}

TEST(OpCost, OpsThatStateNoneTakeOneOperationForEachElement) {
  expectCost("%x: tensor<?x8xf32>", "%0 = weft.amax %x : tensor<?x8xf32> -> tensor<f32>", {0, 8},
             {4, 4 * 8});
}

TEST(OpCost, EmbeddingReadsOneRowForEachToken) {
  expectCost("%t: tensor<1000x8xf32>, %i: tensor<?x4xi32>",
             R"(%0 = weft.embedding %t[%i]
                : tensor<1000x8xf32>[tensor<?x4xi32>] -> tensor<?x4x8xf32>)",
             {0, 0}, {0, 2 * 4 * 4 * 8});
}

TEST(OpCost, NormsTakeAFewOperationsForEachElement) {
  expectCost("%x: tensor<?x8xf32>, %s: tensor<8xf32>",
             R"(%0 = weft.norm rms %x scale(%s : tensor<8xf32>) epsilon = 1.0e-5
                : tensor<?x8xf32> -> tensor<?x8xf32>)",
             {0, 7 * 8}, {4 * 8, 4 * 2 * 8});
}

TEST(OpCost, ConvolutionsMultiplyTheKernelAtEachPlace) {
  // 6 channels of 3 x 3 places, each of 2 channels of a group times 3 x 3 places of the kernel.
  BatchPolynomial flops = {0, 2.0 * (6 * 3 * 3) * (2 * 3 * 3)};
  double x = 4 * 5 * 5, w = 6 * 2 * 3 * 3, y = 6 * 3 * 3;
  std::string window = "strides [1, 1] low [0, 0] high [0, 0] dilations [1, 1]";
  std::string image = "tensor<?x4x5x5xf32>", kernel = "tensor<6x2x3x3xf32>";
  std::string output = "tensor<?x6x3x3xf32>";
  auto op = [&](const std::string &name, const std::string &a, const std::string &b,
                const std::string &result) {
    return "%0 = weft." + name + " %a by %b " + window + " : " + a + ", " + b + " -> " + result;
  };
  BatchPolynomial bytes = {4 * w, 4 * (x + y)};
  expectCost("%a: " + image + ", %b: " + kernel, op("convolution", image, kernel, output), flops,
             bytes);
  expectCost("%a: " + output + ", %b: " + kernel,
             op("convolution_input_grad", output, kernel, image), flops, bytes);
  expectCost("%a: " + image + ", %b: " + output,
             op("convolution_kernel_grad", image, output, kernel), flops, bytes);
}

TEST(OpCost, PoolsLookAtEachPlaceOfTheWindow) {
  expectCost("%x: tensor<?x4x6x6xf32>",
             R"(%0 = weft.pool max %x sizes [2, 3] strides [2, 3] low [0, 0] high [0, 0]
                dilations [1, 1] : tensor<?x4x6x6xf32> -> tensor<?x4x3x2xf32>)",
             {0, 4 * 3 * 2 * (2 * 3)}, {0, 4 * (4 * 6 * 6 + 4 * 3 * 2)});
}

TEST(OpCost, MovementIsNoArithmetic) {
  expectCost("%x: tensor<?x8xf32>",
             R"(%0 = weft.reshape %x [[0], [1, 2]] : tensor<?x8xf32> -> tensor<?x2x4xf32>)", {0, 0},
             {0, 0});
  expectCost("%x: tensor<?x8xf32>",
             R"(%0 = weft.contract "ab->ba"(%x) : (tensor<?x8xf32>) -> tensor<8x?xf32>)", {0, 0},
             {0, 4 * 2 * 8});
  expectCost("%x: tensor<?x8xf32>",
             R"(%0 = weft.extract %x from [0, 2] by [1, 2] : tensor<?x8xf32> -> tensor<?x3xf32>)",
             {0, 0}, {0, 4 * 2 * 3});
  expectCost("%x: tensor<4x?x8xf32>, %i: index",
             R"(%0 = weft.select %x[%i] : tensor<4x?x8xf32> -> tensor<?x8xf32>)", {0, 0},
             {0, 4 * 2 * 8});
}

} // namespace
