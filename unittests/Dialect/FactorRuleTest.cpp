//===- FactorRuleTest.cpp - the factors of ops -----------------------------===//
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

/// A rule as text: "a=8p b=?r -> ..." with sizes and kinds (p passes through, r is reduced, m must
/// be replicated, c goes round where its partner is cut), then the factors of operands and of
/// results, as letters.
std::string text(const FactorRule &rule) {
  std::string result;
  for (auto [number, factor] : llvm::enumerate(rule.factors)) {
    result += std::string(1, 'a' + number) + "=" +
              (ShapedType::isDynamic(factor.size) ? "?" : std::to_string(factor.size)) +
              "prmc"[static_cast<int>(factor.kind)] +
              (factor.kind == FactorKind::Permutation ? std::string(1, 'a' + factor.partner) : "") +
              " ";
  }
  auto append = [&](ArrayRef<SmallVector<unsigned>> tensors) {
    for (ArrayRef<unsigned> dims : tensors) {
      for (unsigned factor : dims) {
        result += static_cast<char>('a' + factor);
      }
      result += ",";
    }
  };
  append(rule.operands);
  result += " -> ";
  append(rule.results);
  return result;
}

std::string ruleOf(const std::string &arguments, const std::string &op) {
  return text(Parsed(arguments, op).shardable().getFactorRule());
}

TEST(FactorRule, ContractSumsOverTheLettersThatTheResultLacks) {
  EXPECT_EQ(ruleOf("%x: tensor<?x4x8xf32>, %w: tensor<16x8xf32>",
                   R"(%0 = weft.contract "bsk,nk->bsn" (%x, %w)
                      : (tensor<?x4x8xf32>, tensor<16x8xf32>) -> tensor<?x4x16xf32>)"),
            "a=?p b=4p c=8r d=16p abc,dc, -> abd,");
}

TEST(FactorRule, MapPassesAllThrough) {
  EXPECT_EQ(ruleOf("%x: tensor<2x4xf32>, %b: tensor<4xf32>, %c: tensor<f32>",
                   R"(%0 = weft.map ins(%x, %b, %c : tensor<2x4xf32>, tensor<4xf32>, tensor<f32>)
                      maps [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>,
                            affine_map<(i, j) -> ()>] -> tensor<2x4xf32> {
                      ^bb0(%p: f32, %q: f32, %r: f32):
                        weft.yield %p : f32
                      })"),
            "a=2p b=4p ab,b,, -> ab,");
}

TEST(FactorRule, NormNeedsWholeRows) {
  EXPECT_EQ(ruleOf("%x: tensor<?x4x8xf32>, %s: tensor<8xf32>",
                   R"(%0 = weft.norm rms %x scale(%s : tensor<8xf32>) epsilon = 1.0e-5
                      : tensor<?x4x8xf32> -> tensor<?x4x8xf32>)"),
            "a=?p b=4p c=8m abc,c, -> abc,");
}

TEST(FactorRule, NormGradSumsScalesOverRows) {
  EXPECT_EQ(ruleOf("%x: tensor<?x8xf32>, %s: tensor<8xf32>",
                   R"(%0:2 = weft.norm_grad rms %x scale(%s : tensor<8xf32>)
                      gradient(%x : tensor<?x8xf32>) epsilon = 1.0e-5
                      : tensor<?x8xf32> -> tensor<?x8xf32>, tensor<8xf32>)"),
            "a=?r b=8m ab,b,ab, -> ab,b,");
}

TEST(FactorRule, EmbeddingSumsOverRowsAndItsGradientOverTokens) {
  EXPECT_EQ(ruleOf("%t: tensor<32x8xf32>, %i: tensor<?x4xi32>",
                   R"(%0 = weft.embedding %t[%i]
                      : tensor<32x8xf32>[tensor<?x4xi32>] -> tensor<?x4x8xf32>)"),
            "a=32r b=8p c=?p d=4p ab,cd, -> cdb,");
  EXPECT_EQ(ruleOf("%g: tensor<?x4x8xf32>, %i: tensor<?x4xi32>",
                   R"(%0 = weft.embedding_grad %g[%i]
                      : tensor<?x4x8xf32>[tensor<?x4xi32>] -> tensor<32x8xf32>)"),
            "a=?r b=4r c=8p d=32p ab,abc, -> dc,");
}

TEST(FactorRule, CrossEntropyJoinsItsHalvesByDifferentOperators) {
  Parsed parsed("%x: tensor<2x8xf32>, %t: tensor<2xi32>",
                R"(%0:2 = weft.cross_entropy %x[%t]
                   : tensor<2x8xf32>[tensor<2xi32>] -> tensor<2xf32>, tensor<2xf32>)");
  FactorRule rule = parsed.shardable().getFactorRule();
  EXPECT_EQ(text(rule), "a=2p b=8r ab,a, -> a,a,");
  EXPECT_EQ(rule.reductions[0], ReductionKind::LogSumExp);
  EXPECT_EQ(rule.reductions[1], ReductionKind::Sum);
}

const char *kAttentionArguments =
    "%q: tensor<2x4x2x3x8xf32>, %k: tensor<2x4x2x8xf32>, %l: tensor<2x2x3x4xf32>, "
    "%s: tensor<i64>, %n: index";

TEST(FactorRule, AttentionCutsAllButFeatures) {
  EXPECT_EQ(ruleOf(kAttentionArguments,
                   R"(%0:2 = weft.attention(%q, %k, %k) scale = 1.0 dropout = 0.0
                      : tensor<2x4x2x3x8xf32>, tensor<2x4x2x8xf32>, tensor<2x4x2x8xf32>
                      -> tensor<2x4x2x3x8xf32>, tensor<2x2x3x4xf32>)"),
            "a=2p b=4p c=2p d=3p e=8m f=4cb g=8m abcde,afce,afcg, -> abcdg,acdb,");
}

TEST(FactorRule, AttentionGradSumsKeysOverQueries) {
  EXPECT_EQ(ruleOf(kAttentionArguments,
                   R"(%0:3 = weft.attention_grad(%q, %k, %k) output(%q, %l) gradient(%q)
                      scale = 1.0 dropout = 0.0
                      : tensor<2x4x2x3x8xf32>, tensor<2x4x2x8xf32>, tensor<2x4x2x8xf32>,
                        tensor<2x4x2x3x8xf32>, tensor<2x2x3x4xf32>, tensor<2x4x2x3x8xf32>
                      -> tensor<2x4x2x3x8xf32>, tensor<2x4x2x8xf32>, tensor<2x4x2x8xf32>)"),
            "a=2p b=4r c=2p d=3r e=8m f=4cb g=8m "
            "abcde,afce,afcg,abcdg,acdb,abcdg, -> abcde,afce,afcg,");
}

TEST(FactorRule, RotaryCutsAllButFeatures) {
  EXPECT_EQ(ruleOf("%x: tensor<2x4x3x8xf32>, %t: tensor<2x4x4xf32>",
                   R"(%0 = weft.rotary %x table(%t : tensor<2x4x4xf32>)
                      : tensor<2x4x3x8xf32> -> tensor<2x4x3x8xf32>)"),
            "a=2p b=4p c=3p d=8m e=2m f=4m abcd,ebf, -> abcd,");
}

TEST(FactorRule, ValuesWithoutOperandsMayBeCut) {
  EXPECT_EQ(ruleOf("", "%0 = weft.iota : tensor<8xi32>"), "a=8p  -> a,");
  EXPECT_EQ(ruleOf("%s: tensor<i64>, %n: index",
                   "%0 = weft.fill normal 1.0 seed(%s : tensor<i64>) stream(%n) : tensor<8x2xf32>"),
            "a=8p b=2p ,, -> ab,");
}

TEST(FactorRule, PaddingFollowsFromIt) {
  Parsed contract("%x: tensor<4x8xf32>, %w: tensor<16x8xf32>",
                  R"(%0 = weft.contract "sk,nk->sn" (%x, %w)
                     : (tensor<4x8xf32>, tensor<16x8xf32>) -> tensor<4x16xf32>)");
  for (unsigned factor : {0, 1, 2}) {
    EXPECT_TRUE(mayBePadded(contract.shardable(), factor)) << factor;
  }
  EXPECT_TRUE(isNothingBeyond(contract.shardable(), 1, {0}, 0)); // The sum is of zeros.
  EXPECT_FALSE(isNothingBeyond(contract.shardable(), 1, {}, 0));
  Parsed norm("%x: tensor<4x8xf32>, %s: tensor<8xf32>",
              R"(%0 = weft.norm rms %x scale(%s : tensor<8xf32>) epsilon = 1.0e-5
                 : tensor<4x8xf32> -> tensor<4x8xf32>)");
  EXPECT_TRUE(mayBePadded(norm.shardable(), 0));
  EXPECT_FALSE(mayBePadded(norm.shardable(), 1)); // It divides by the length of a row.
  EXPECT_FALSE(isNothingBeyond(norm.shardable(), 0, {0}, 0));
}

TEST(FactorRule, AnOpMaySayMoreOfItsPadding) {
  Parsed sums("%x: tensor<4x8xf32>",
              "%0 = weft.cumulative_sum %x along 1 : tensor<4x8xf32> -> tensor<4x8xf32>");
  EXPECT_TRUE(mayBePadded(sums.shardable(), 1)); // The padding comes after all summands.
  EXPECT_TRUE(isNothingBeyond(sums.shardable(), 0, {0}, 0));
  EXPECT_FALSE(isNothingBeyond(sums.shardable(), 1, {0}, 0)); // It has the sum of the row.
}

} // namespace
