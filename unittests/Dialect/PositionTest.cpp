//===- PositionTest.cpp - ops that need the position of their shard --------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Parsed.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace weft;
using namespace weft::test;

namespace {

const char *kAttentionArguments =
    "%q: tensor<2x4x2x3x8xf32>, %k: tensor<2x4x2x8xf32>, %s: tensor<i64>, %n: index";

TEST(Position, Factors) {
  auto positions = [](const std::string &arguments, const std::string &op) {
    Parsed parsed(arguments, op);
    return parsed.get<PositionOpInterface>().getPositionFactors();
  };
  using Factors = SmallVector<unsigned>;
  EXPECT_EQ(positions("", "%0 = weft.iota : tensor<8xi32>"), Factors{0});
  EXPECT_EQ(positions("", "%0 = weft.fill constant 1.0 : tensor<8xf32>"), Factors{});
  EXPECT_EQ(positions("", "%0 = weft.rotary_table [1.0] : tensor<2x4x1xf32>"), Factors{1});
  EXPECT_EQ(positions("%g: tensor<4x8xf32>, %i: tensor<4xi32>",
                      "%0 = weft.embedding_grad %g[%i]"
                      " : tensor<4x8xf32>[tensor<4xi32>] -> tensor<32x8xf32>"),
            Factors{2});
  const std::string types = " : tensor<2x4x2x3x8xf32>, tensor<2x4x2x8xf32>, tensor<2x4x2x8xf32>"
                            " -> tensor<2x4x2x3x8xf32>, tensor<2x2x3x4xf32>";
  auto attention = [&](const std::string &attributes) {
    return positions(kAttentionArguments,
                     "%0:2 = weft.attention(%q, %k, %k) scale = 1.0 dropout = " + attributes +
                         types);
  };
  EXPECT_EQ(attention("0.0"), (Factors{1, 5})); // queries and keys
  EXPECT_EQ(attention("0.0 bidirectional"), Factors{});
  // In the order in which a weight's number counts them.
  EXPECT_EQ(attention("0.5 key(%s, %s, %n : tensor<i64>, tensor<i64>)"), (Factors{0, 2, 3, 1, 5}));
  EXPECT_EQ(positions("%x: tensor<2x8xf32>, %t: tensor<2xi32>",
                      "%0:2 = weft.cross_entropy %x[%t]"
                      " : tensor<2x8xf32>[tensor<2xi32>] -> tensor<2xf32>, tensor<2xf32>"),
            Factors{1});
}

TEST(Position, IsNoneWithoutNeed) {
  Parsed parsed("%x: tensor<4x8xf32>", "%0 = weft.softmax %x : tensor<4x8xf32> -> tensor<4x8xf32>");
  Operation *softmax = parsed.shardable();
  EXPECT_FALSE(isa<PositionOpInterface>(softmax)); // Its rows are whole.
  auto sized = cast<UnpaddedSizesOpInterface>(softmax);
  EXPECT_EQ(sized.getSizedFactors(), SmallVector<unsigned>{1});
  EXPECT_TRUE(sized.getUnpaddedSizes().empty());
  sized.setUnpaddedSizes({5});
  EXPECT_EQ(sized.getUnpaddedSizes(), ArrayRef<int64_t>{5});
}

} // namespace
