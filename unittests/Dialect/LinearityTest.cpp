//===- LinearityTest.cpp - tests of maps of pending sums -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Parsed.h"

#include "weft/Dialect/Weft/IR/ScalarOps.h"

#include <gtest/gtest.h>

using namespace weft;
using namespace weft::test;

namespace {

/// Returns how the results of `body` depend on the chosen ones of its arguments %0, %1 and %2.
Linearity analyze(const std::string &body, llvm::ArrayRef<unsigned> chosen) {
  Parsed parsed = parseMap(3, body);
  return analyzeLinearity(parsed.get<MapOp>().getBody().front(), chosen).front();
}

constexpr Linearity kConstant = Linearity::Constant, kAdditive = Linearity::Additive,
                    kNonlinear = Linearity::Nonlinear;

TEST(Linearity, Arguments) {
  EXPECT_EQ(analyze("weft.yield %0 : f64", {0}), kAdditive);
  EXPECT_EQ(analyze("weft.yield %0 : f64", {1}), kConstant);
  EXPECT_EQ(analyze("weft.yield %0 : f64", {0, 1, 2}), kAdditive);
}

TEST(Linearity, Sums) {
  for (const char *op : {"addf", "subf"}) {
    std::string body = std::string("%a = arith.") + op + " %0, %1 : f64\nweft.yield %a : f64";
    EXPECT_EQ(analyze(body, {0, 1}), kAdditive) << op;
    EXPECT_EQ(analyze(body, {0}), kNonlinear) << op;
    EXPECT_EQ(analyze(body, {1}), kNonlinear) << op;
    EXPECT_EQ(analyze(body, {2}), kConstant) << op;
  }
}

TEST(Linearity, Matmuls) {
  std::string body = "%a = arith.mulf %0, %1 : f64\nweft.yield %a : f64";
  EXPECT_EQ(analyze(body, {0}), kAdditive);
  EXPECT_EQ(analyze(body, {1}), kAdditive);
  EXPECT_EQ(analyze(body, {0, 1}), kNonlinear);
  EXPECT_EQ(analyze(body, {2}), kConstant);
}

TEST(Linearity, Quotients) {
  std::string body = "%a = arith.divf %0, %1 : f64\nweft.yield %a : f64";
  EXPECT_EQ(analyze(body, {0}), kAdditive);
  EXPECT_EQ(analyze(body, {1}), kNonlinear);
  EXPECT_EQ(analyze(body, {0, 1}), kNonlinear);
}

TEST(Linearity, Choices) {
  std::string body = "%c = arith.cmpf olt, %2, %2 : f64\n"
                     "%a = arith.select %c, %0, %1 : f64\nweft.yield %a : f64";
  EXPECT_EQ(analyze(body, {0, 1}), kAdditive);
  EXPECT_EQ(analyze(body, {0}), kNonlinear);
  EXPECT_EQ(analyze(body, {2}), kNonlinear);
  EXPECT_EQ(analyze("%a = arith.maximumf %0, %1 : f64\nweft.yield %a : f64", {0, 1}), kNonlinear);
}

TEST(Linearity, Functions) {
  for (const char *op : {"exp", "log", "tanh", "sqrt", "rsqrt", "erf", "sin", "cos"}) {
    std::string body = std::string("%a = math.") + op + " %0 : f64\nweft.yield %a : f64";
    EXPECT_EQ(analyze(body, {0}), kNonlinear) << op;
    EXPECT_EQ(analyze(body, {1}), kConstant) << op;
  }
  EXPECT_EQ(analyze("%a = math.powf %0, %1 : f64\nweft.yield %a : f64", {0}), kNonlinear);
}

TEST(Linearity, Constants) {
  // Zero for everything is additive too, but nobody builds such a map of a pending sum.
  EXPECT_EQ(analyze("%a = arith.constant 0.0 : f64\nweft.yield %a : f64", {0}), kConstant);
  EXPECT_EQ(analyze("%a = arith.constant 2.0 : f64\n%b = arith.mulf %a, %0 : f64\n"
                    "weft.yield %b : f64",
                    {0}),
            kAdditive);
  EXPECT_EQ(analyze("%a = arith.constant 2.0 : f64\n%b = arith.addf %a, %0 : f64\n"
                    "weft.yield %b : f64",
                    {0}),
            kNonlinear);
}

TEST(Linearity, Casts) {
  EXPECT_EQ(analyze("%a = arith.truncf %0 : f64 to f32\n%b = arith.extf %a : f32 to f64\n"
                    "weft.yield %b : f64",
                    {0}),
            kNonlinear); // Rounds.
}

/// An update of AdamW is additive in nothing, one of plain SGD in parameter and gradient together.
TEST(Linearity, Chains) {
  std::string sgd =
      "%a = arith.mulf %2, %1 : f64\n%b = arith.subf %0, %a : f64\nweft.yield %b : f64";
  EXPECT_EQ(analyze(sgd, {1}), kNonlinear);
  EXPECT_EQ(analyze(sgd, {0, 1}), kAdditive);
  EXPECT_EQ(analyze(sgd, {0, 1, 2}), kNonlinear);
}

TEST(Linearity, EveryResultCounts) {
  Parsed parsed("%x: tensor<f64>", R"(
    %0:2 = weft.map ins(%x : tensor<f64>) maps [affine_map<() -> ()>]
        -> tensor<f64>, tensor<f64> {
    ^bb0(%a: f64):
      %b = arith.mulf %a, %a : f64
      weft.yield %a, %b : f64, f64
    })");
  MapOp map = parsed.get<MapOp>();
  EXPECT_EQ(analyzeLinearity(map.getBody().front(), {0}),
            (llvm::SmallVector<Linearity>{kAdditive, kNonlinear}));
  EXPECT_FALSE(map.isAdditiveIn({0}));
}

} // namespace
