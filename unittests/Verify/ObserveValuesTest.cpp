//===- ObserveValuesTest.cpp - tests of the names of observed values ------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Verify/ObserveValues.h"

#include "weft/Dialect/Weft/IR/ScalarOps.h"
#include "weft/Dialect/Weft/IR/StageMarks.h"
#include "weft/Dialect/Weft/IR/Weft.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace weft;
using namespace weft::verify;

namespace {

/// Two layers, of which the first and the head read one input.
constexpr const char *kWhole = R"(
#mesh = #weft.mesh<>
#rows = #weft.sharding<#mesh, [{}, {}]>
module attributes {weft.mesh = #mesh} {
  weft.variable input @x ["batch", "hidden"] : tensor<4x4xf64, #rows>
  weft.variable parameter @w ["ffn", "hidden"] : tensor<4x4xf64, #rows>
  weft.variable parameter @v ["ffn", "hidden"] : tensor<4x4xf64, #rows>
  func.func private @layer(%x: tensor<4x4xf64, #rows>, %w: tensor<4x4xf64, #rows>) -> tensor<4x4xf64, #rows> {
    %0 = weft.contract "bk,nk->bn"(%x, %w) : (tensor<4x4xf64, #rows>, tensor<4x4xf64, #rows>) -> tensor<4x4xf64, #rows> loc("matmul")
    return %0 : tensor<4x4xf64, #rows>
  }
  func.func @step() {
    %c = weft.read @x : tensor<4x4xf64, #rows> loc("input")
    %w = weft.read @w : tensor<4x4xf64, #rows>
    %0 = weft.call @layer(%c, %w) label "layers.0" : (tensor<4x4xf64, #rows>, tensor<4x4xf64, #rows>) -> tensor<4x4xf64, #rows>
    %v = weft.read @v : tensor<4x4xf64, #rows>
    %1 = weft.call @layer(%0, %v) label "layers.1" : (tensor<4x4xf64, #rows>, tensor<4x4xf64, #rows>) -> tensor<4x4xf64, #rows>
    %2 = weft.contract "bk,nk->bn"(%1, %c) : (tensor<4x4xf64, #rows>, tensor<4x4xf64, #rows>) -> tensor<4x4xf64, #rows> loc("head")
    weft.assign @v, %2 : tensor<4x4xf64, #rows>
    return
  }
}
)";

/// The same in two stages, of which each reads the input.
constexpr const char *kStages = R"(
#mesh = #weft.mesh<>
#rows = #weft.sharding<#mesh, [{}, {}]>
module attributes {weft.mesh = #mesh} {
  weft.variable input @x ["batch", "hidden"] : tensor<4x4xf64, #rows>
  weft.variable parameter @w ["ffn", "hidden"] {weft.stage = 0 : i64} : tensor<4x4xf64, #rows>
  weft.variable parameter @v ["ffn", "hidden"] {weft.stage = 1 : i64} : tensor<4x4xf64, #rows>
  func.func private @layer(%x: tensor<4x4xf64, #rows>, %w: tensor<4x4xf64, #rows>) -> tensor<4x4xf64, #rows> {
    %0 = weft.contract "bk,nk->bn"(%x, %w) : (tensor<4x4xf64, #rows>, tensor<4x4xf64, #rows>) -> tensor<4x4xf64, #rows> loc("matmul")
    return %0 : tensor<4x4xf64, #rows>
  }
  func.func private @step_forward_0() -> tensor<4x4xf64, #rows> attributes {weft.stage = 0 : i64} {
    %w = weft.read @w : tensor<4x4xf64, #rows>
    %c = weft.read @x : tensor<4x4xf64, #rows> loc("input")
    %0 = weft.call @layer(%c, %w) label "layers.0" : (tensor<4x4xf64, #rows>, tensor<4x4xf64, #rows>) -> tensor<4x4xf64, #rows>
    return %0 : tensor<4x4xf64, #rows>
  }
  func.func private @step_forward_1(%x: tensor<4x4xf64, #rows>) -> tensor<4x4xf64, #rows> attributes {weft.stage = 1 : i64} {
    %v = weft.read @v : tensor<4x4xf64, #rows>
    %c = weft.read @x : tensor<4x4xf64, #rows> loc("input")
    %0 = weft.call @layer(%x, %v) label "layers.1" : (tensor<4x4xf64, #rows>, tensor<4x4xf64, #rows>) -> tensor<4x4xf64, #rows>
    %1 = weft.contract "bk,nk->bn"(%0, %c) : (tensor<4x4xf64, #rows>, tensor<4x4xf64, #rows>) -> tensor<4x4xf64, #rows> loc("head")
    return %1 : tensor<4x4xf64, #rows>
  }
  func.func @step() {
    %0 = weft.call @step_forward_0() label "micro-batch 0" {weft.stage = 0 : i64} : () -> tensor<4x4xf64, #rows>
    %1 = weft.transfer %0 from 0 to 1 : tensor<4x4xf64, #rows>
    %2 = weft.call @step_forward_1(%1) label "micro-batch 0" {weft.stage = 1 : i64} : (tensor<4x4xf64, #rows>) -> tensor<4x4xf64, #rows>
    weft.assign @v, %2 {weft.stage = 1 : i64} : tensor<4x4xf64, #rows>
    return
  }
}
)";

/// Adds up three numbers, beginning with zero.
constexpr const char *kSums = R"(
#mesh = #weft.mesh<>
#one = #weft.sharding<#mesh, []>
#none = affine_map<() -> ()>
module attributes {weft.mesh = #mesh} {
  weft.variable parameter @a [] : tensor<f64, #one>
  weft.variable parameter @b [] : tensor<f64, #one>
  weft.variable parameter @c [] : tensor<f64, #one>
  func.func @step() {
    %zero = weft.fill constant 0.0 : tensor<f64, #one>
    %a = weft.read @a : tensor<f64, #one>
    %b = weft.read @b : tensor<f64, #one>
    %c = weft.read @c : tensor<f64, #one>
    %0 = weft.map ins(%zero, %a, %b : tensor<f64, #one>, tensor<f64, #one>, tensor<f64, #one>) maps [#none, #none, #none] -> tensor<f64, #one> {
    ^bb0(%x: f64, %y: f64, %z: f64):
      %s = arith.addf %x, %y : f64
      %t = arith.addf %s, %z : f64
      weft.yield %t : f64
    } loc("part")
    %1 = weft.map ins(%0, %c : tensor<f64, #one>, tensor<f64, #one>) maps [#none, #none] -> tensor<f64, #one> {
    ^bb0(%x: f64, %y: f64):
      %s = arith.addf %x, %y : f64
      weft.yield %s : f64
    } loc("total")
    weft.assign @b, %1 : tensor<f64, #one>
    return
  }
}
)";

/// The same in two stages.
constexpr const char *kStageSums = R"(
#mesh = #weft.mesh<>
#one = #weft.sharding<#mesh, []>
#none = affine_map<() -> ()>
module attributes {weft.mesh = #mesh} {
  weft.variable parameter @a [] {weft.stage = 0 : i64} : tensor<f64, #one>
  weft.variable parameter @b [] {weft.stage = 1 : i64} : tensor<f64, #one>
  weft.variable parameter @c [] {weft.stage = 0 : i64} : tensor<f64, #one>
  func.func private @step_forward_1() attributes {weft.stage = 1 : i64} {
    return
  }
  func.func @step() {
    %a = weft.read @a {weft.stage = 0 : i64} : tensor<f64, #one>
    %b = weft.read @b {weft.stage = 1 : i64} : tensor<f64, #one>
    %c = weft.read @c {weft.stage = 0 : i64} : tensor<f64, #one>
    %0 = weft.map ins(%a, %c : tensor<f64, #one>, tensor<f64, #one>) maps [#none, #none] {weft.stage = 0 : i64} -> tensor<f64, #one> {
    ^bb0(%x: f64, %y: f64):
      %s = arith.addf %x, %y : f64
      weft.yield %s : f64
    } loc("own")
    %1 = weft.transfer %0 from 0 to 1 : tensor<f64, #one>
    %2 = weft.map ins(%1, %b : tensor<f64, #one>, tensor<f64, #one>) maps [#none, #none] {weft.stage = 1 : i64} -> tensor<f64, #one> {
    ^bb0(%x: f64, %y: f64):
      %s = arith.addf %x, %y : f64
      weft.yield %s : f64
    } loc("total")
    weft.assign @b, %2 {weft.stage = 1 : i64} : tensor<f64, #one>
    return
  }
}
)";

class ObserveValuesTest : public testing::Test {
protected:
  ObserveValuesTest() {
    DialectRegistry registry;
    registry.insert<WeftDialect, func::FuncDialect, arith::ArithDialect>();
    registerScalarOpModels(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  OwningOpRef<ModuleOp> parse(const char *source) {
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(source, &context);
    EXPECT_TRUE(module);
    return module;
  }

  /// Returns the name, in any program, of the value that `maker` made; "" if there is none.
  static std::string originalOf(const std::vector<ObservedValue> &values, StringRef maker) {
    for (const ObservedValue &value : values) {
      if (value.maker == maker) {
        return value.original;
      }
    }
    return "";
  }

  MLIRContext context;
};

TEST_F(ObserveValuesTest, StagesHaveTheValuesOfTheWhole) {
  auto whole = parse(kWhole), stages = parse(kStages);
  std::vector<ObservedValue> ofWhole = observeValues(*whole), ofStages = observeValues(*stages);
  for (auto [maker, stage] : {std::pair("layers.0/matmul (contract)", " in stage 0"),
                              {"layers.1/matmul (contract)", " in stage 1"},
                              {"head (contract)", " in stage 1"},
                              {"input (read)", " in stage 0"},
                              {"input (read)", " in stage 1"}}) {
    std::string name = originalOf(ofWhole, maker);
    EXPECT_FALSE(name.empty()) << maker;
    EXPECT_EQ(name, originalOf(ofStages, std::string("micro-batch 0/") + maker + stage)) << maker;
  }
  EXPECT_NE(originalOf(ofWhole, "layers.0/matmul (contract)"),
            originalOf(ofWhole, "layers.1/matmul (contract)"));
  EXPECT_EQ(originalOf(ofStages, "transfer from stage 0 to stage 1 of "
                                 "micro-batch 0/layers.0/matmul (contract)"),
            originalOf(ofWhole, "layers.0/matmul (contract)"));
}

TEST_F(ObserveValuesTest, SumsHaveNamesByTheirTerms) {
  auto whole = parse(kSums), stages = parse(kStageSums);
  std::vector<ObservedValue> ofWhole = observeValues(*whole), ofStages = observeValues(*stages);
  EXPECT_NE(originalOf(ofWhole, "total (map)"), "");
  EXPECT_EQ(originalOf(ofWhole, "total (map)"), originalOf(ofStages, "total (map) in stage 1"));
  EXPECT_NE(originalOf(ofWhole, "total (map)"), originalOf(ofStages, "own (map) in stage 0"));
  for (const std::vector<ObservedValue> *values : {&ofWhole, &ofStages}) {
    for (const ObservedValue &value : *values) {
      bool isSum = StringRef(value.maker).contains("(map)");
      EXPECT_EQ(value.mayBeOfStage, values == &ofStages && isSum) << value.maker;
    }
  }
}

TEST_F(ObserveValuesTest, ConstantsAreNotObserved) {
  // Constants of several sizes would have one name, and none can be wrong.
  std::string text = kWhole;
  const std::string read = "weft.read @x";
  auto module = parse(text.replace(text.find(read), read.size(), "weft.fill constant 2.0").c_str());
  std::vector<ObservedValue> values = observeValues(*module);
  EXPECT_EQ(originalOf(values, "input (fill)"), "");
  EXPECT_NE(originalOf(values, "head (contract)"), "");
}

TEST_F(ObserveValuesTest, EachStageObservesItsOwn) {
  auto stages = parse(kStages);
  std::vector<ObservedValue> values = observeValues(*stages);
  EXPECT_TRUE(succeeded(mlir::verify(*stages)));
  std::map<std::string, int64_t> stageOf;
  for (auto observe : stages->lookupSymbol<func::FuncOp>("step").getOps<ObserveOp>()) {
    // No two of one name, as files have one of each.
    EXPECT_TRUE(stageOf.insert({observe.getName().str(), *markedStageOf(observe)}).second);
  }
  ASSERT_EQ(stageOf.size(), values.size());
  for (const ObservedValue &value : values) {
    bool isFirst = StringRef(value.maker).ends_with("in stage 0");
    EXPECT_EQ(stageOf.at(value.name), isFirst ? 0 : 1) << value.maker;
  }
}

} // namespace
