//===- FollowPlanTest.cpp - tests of small programs with a plan's shardings ===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Verify/FollowPlan.h"

#include "weft/Dialect/Weft/IR/Weft.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace weft;

namespace {

/// Three layers, each a matmul cut by its inner dimension, summed over tp; between them the value
/// is cut by its first dimension.
constexpr const char *plannedText = R"(
#mesh = #weft.mesh<"tp"=4>
#rows = #weft.sharding<#mesh, [{"tp"}, {}]>
#columns = #weft.sharding<#mesh, [{}, {"tp"}]>
#pending = #weft.sharding<#mesh, [{}, {}], unreduced = sum{"tp"}>
#whole = #weft.sharding<#mesh, [{}, {}]>
module attributes {weft.mesh = #mesh} {
  weft.variable parameter @layers.0.w ["ffn", "hidden"] : tensor<32x32xf32, #columns>
  weft.variable parameter @layers.1.w ["ffn", "hidden"] : tensor<32x32xf32, #columns>
  weft.variable parameter @layers.2.w ["ffn", "hidden"] : tensor<32x32xf32, #columns>
  func.func private @layer(%x: tensor<16x32xf32, #columns>, %w: tensor<32x32xf32, #columns>)
      -> tensor<16x32xf32, #rows> {
    %0 = weft.contract "bk,nk->bn"(%x, %w) : (tensor<16x32xf32, #columns>, tensor<32x32xf32, #columns>) -> tensor<16x32xf32, #pending> loc("matmul")
    %1 = weft.reduce_scatter sum %0 dim 0 over ["tp"] of #mesh : tensor<16x32xf32, #pending> -> tensor<16x32xf32, #rows>
    return %1 : tensor<16x32xf32, #rows>
  }
  func.func @step(%x: tensor<16x32xf32, #rows>) -> tensor<16x32xf32, #rows> {
    %w0 = weft.read @layers.0.w : tensor<32x32xf32, #columns>
    %a = weft.all_to_all %x split 1 concat 0 over ["tp"] of #mesh : tensor<16x32xf32, #rows> -> tensor<16x32xf32, #columns>
    %0 = weft.call @layer(%a, %w0) label "layers.0" : (tensor<16x32xf32, #columns>, tensor<32x32xf32, #columns>) -> tensor<16x32xf32, #rows>
    %w1 = weft.read @layers.1.w : tensor<32x32xf32, #columns>
    %b = weft.all_gather %0 dim 0 over ["tp"] of #mesh : tensor<16x32xf32, #rows> -> tensor<16x32xf32, #whole>
    %c = weft.slice %b dim 1 over ["tp"] of #mesh : tensor<16x32xf32, #whole> -> tensor<16x32xf32, #columns>
    %1 = weft.call @layer(%c, %w1) label "layers.1" : (tensor<16x32xf32, #columns>, tensor<32x32xf32, #columns>) -> tensor<16x32xf32, #rows>
    %w2 = weft.read @layers.2.w : tensor<32x32xf32, #columns>
    %d = weft.all_to_all %1 split 1 concat 0 over ["tp"] of #mesh : tensor<16x32xf32, #rows> -> tensor<16x32xf32, #columns>
    %2 = weft.call @layer(%d, %w2) label "layers.2" : (tensor<16x32xf32, #columns>, tensor<32x32xf32, #columns>) -> tensor<16x32xf32, #rows>
    return %2 : tensor<16x32xf32, #rows>
  }
}
)";

constexpr const char *smallText = R"(
#mesh = #weft.mesh<"tp"=2>
module attributes {weft.mesh = #mesh} {
  weft.variable parameter @layers.0.w ["ffn", "hidden"] : tensor<4x4xf64>
  weft.variable parameter @layers.1.w ["ffn", "hidden"] : tensor<4x4xf64>
  func.func private @layer(%x: tensor<6x4xf64>, %w: tensor<4x4xf64>) -> tensor<6x4xf64> {
    %0 = weft.contract "bk,nk->bn"(%x, %w) : (tensor<6x4xf64>, tensor<4x4xf64>) -> tensor<6x4xf64> loc("matmul")
    return %0 : tensor<6x4xf64>
  }
  func.func @step(%x: tensor<6x4xf64>) -> tensor<6x4xf64> {
    %w0 = weft.read @layers.0.w : tensor<4x4xf64>
    %0 = weft.call @layer(%x, %w0) label "layers.0" : (tensor<6x4xf64>, tensor<4x4xf64>) -> tensor<6x4xf64>
    %w1 = weft.read @layers.1.w : tensor<4x4xf64>
    %1 = weft.call @layer(%0, %w1) label "layers.1" : (tensor<6x4xf64>, tensor<4x4xf64>) -> tensor<6x4xf64>
    return %1 : tensor<6x4xf64>
  }
}
)";

class FollowPlanTest : public testing::Test {
protected:
  FollowPlanTest() { context.loadDialect<WeftDialect, func::FuncDialect, arith::ArithDialect>(); }

  std::string text(std::string source, const std::string &from, const std::string &to) {
    size_t at = source.find(from);
    EXPECT_NE(at, source.npos) << from;
    return source.replace(at, from.size(), to);
  }

  OwningOpRef<ModuleOp> parse(const std::string &source) {
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(source, &context);
    EXPECT_TRUE(module);
    return module;
  }

  /// Returns the error, or "".
  std::string follow(ModuleOp module, ModuleOp planned, const std::vector<int64_t> &layers) {
    std::string reason;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      reason += diagnostic.str();
      return success();
    });
    bool isDone =
        succeeded(verify::followPlan(module, planned, layers)) && succeeded(mlir::verify(module));
    return isDone ? "" : "failed: " + reason;
  }

  /// The names of the ops of @step, in order.
  std::vector<std::string> opsOf(ModuleOp module) {
    std::vector<std::string> names;
    for (Operation &op : module.lookupSymbol<func::FuncOp>("step").getBody().front()) {
      names.push_back(op.getName().stripDialect().str());
    }
    return names;
  }

  MLIRContext context;
  const std::string planned = plannedText, small = smallText;
};

TEST_F(FollowPlanTest, MovesValuesAsTheLayersItStandsFor) {
  auto large = parse(planned), module = parse(small);
  EXPECT_EQ(follow(*module, *large, {0, 1}), "");
  EXPECT_EQ(opsOf(*module), (std::vector<std::string>{"read", "all_to_all", "call", "read",
                                                      "all_gather", "slice", "call", "return"}));
  module = parse(small);
  EXPECT_EQ(follow(*module, *large, {0, 2}), "");
  EXPECT_EQ(opsOf(*module), (std::vector<std::string>{"read", "all_to_all", "call", "read",
                                                      "all_to_all", "call", "return"}));
}

TEST_F(FollowPlanTest, FunctionsHaveTheShardingsOfTheirCalls) {
  auto large = parse(planned), module = parse(small);
  ASSERT_EQ(follow(*module, *large, {0, 1}), "");
  auto layer = module->lookupSymbol<func::FuncOp>("layer");
  auto result = cast<RankedTensorType>(layer.getResultTypes()[0]);
  EXPECT_EQ(result.getShape(), (ArrayRef<int64_t>{6, 4}));
  EXPECT_TRUE(result.getElementType().isF64());
  auto sharding = cast<ShardingAttr>(result.getEncoding());
  EXPECT_EQ(sharding.getDims()[0].size(), 1u);
  EXPECT_EQ(sharding.getMesh().getSizes(), (ArrayRef<int64_t>{2}));
}

TEST_F(FollowPlanTest, AnotherOpIsRefused) {
  auto large = parse(planned);
  auto module = parse(text(small, "loc(\"matmul\")", "loc(\"another\")"));
  EXPECT_NE(follow(*module, *large, {0, 1}).find("has no counterpart in @layer"),
            std::string::npos);
}

TEST_F(FollowPlanTest, ALayerThatIsNotThereIsRefused) {
  auto large = parse(planned), module = parse(small);
  EXPECT_NE(follow(*module, *large, {0, 7}).find("is no variable of the plan"), std::string::npos);
}

} // namespace
