//===- FollowPlanTest.cpp - tests of small programs with a plan's shardings ===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Verify/FollowPlan.h"

#include "weft/Dialect/Weft/IR/ScalarOps.h"
#include "weft/Dialect/Weft/IR/Sharding.h"
#include "weft/Dialect/Weft/IR/Weft.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
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
  FollowPlanTest() {
    DialectRegistry registry;
    registry.insert<WeftDialect, func::FuncDialect, arith::ArithDialect, math::MathDialect>();
    registerScalarOpModels(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

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

  /// The number of axes that cut each dimension of a value.
  static std::vector<size_t> axesOf(Type type) {
    std::vector<size_t> counts;
    auto sharding = cast<ShardingAttr>(cast<RankedTensorType>(type).getEncoding());
    for (ArrayAttr axes : sharding.getDims()) {
      counts.push_back(axes.size());
    }
    return counts;
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

TEST_F(FollowPlanTest, LayersMayHaveAnotherOrder) {
  // As where every second layer has experts, and the small model has those last. Both fills are in
  // the same place, and distinguished by the variables that store them.
  auto large = parse(R"(
#mesh = #weft.mesh<"tp"=4>
#rows = #weft.sharding<#mesh, [{"tp"}, {}]>
#columns = #weft.sharding<#mesh, [{}, {"tp"}]>
module attributes {weft.mesh = #mesh} {
  weft.variable parameter @layers.0.w ["ffn", "hidden"] : tensor<8x8xf32, #rows>
  weft.variable parameter @layers.1.w ["ffn", "hidden"] : tensor<8x8xf32, #columns>
  func.func @step(%a: tensor<8x8xf32, #rows>, %b: tensor<8x8xf32, #columns>)
      -> (tensor<8x8xf32, #rows>, tensor<8x8xf32, #columns>) {
    %0 = weft.fill constant 0.0 : tensor<8x8xf32, #rows> loc("optimizer")
    weft.assign @layers.0.w, %0 : tensor<8x8xf32, #rows>
    %1 = weft.fill constant 0.0 : tensor<8x8xf32, #columns> loc("optimizer")
    weft.assign @layers.1.w, %1 : tensor<8x8xf32, #columns>
    %2 = weft.contract "ab->ab"(%a) : (tensor<8x8xf32, #rows>) -> tensor<8x8xf32, #rows> loc("layers.0")
    %3 = weft.contract "ab->ab"(%b) : (tensor<8x8xf32, #columns>) -> tensor<8x8xf32, #columns> loc("layers.1")
    return %2, %3 : tensor<8x8xf32, #rows>, tensor<8x8xf32, #columns>
  }
}
)");
  auto module = parse(R"(
#mesh = #weft.mesh<"tp"=2>
module attributes {weft.mesh = #mesh} {
  weft.variable parameter @layers.0.w ["ffn", "hidden"] : tensor<4x4xf64>
  weft.variable parameter @layers.1.w ["ffn", "hidden"] : tensor<4x4xf64>
  func.func @step(%a: tensor<4x4xf64>, %b: tensor<4x4xf64>) -> (tensor<4x4xf64>, tensor<4x4xf64>) {
    %0 = weft.fill constant 0.0 : tensor<4x4xf64> loc("optimizer")
    weft.assign @layers.0.w, %0 : tensor<4x4xf64>
    %1 = weft.fill constant 0.0 : tensor<4x4xf64> loc("optimizer")
    weft.assign @layers.1.w, %1 : tensor<4x4xf64>
    %2 = weft.contract "ab->ab"(%a) : (tensor<4x4xf64>) -> tensor<4x4xf64> loc("layers.0")
    %3 = weft.contract "ab->ab"(%b) : (tensor<4x4xf64>) -> tensor<4x4xf64> loc("layers.1")
    return %2, %3 : tensor<4x4xf64>, tensor<4x4xf64>
  }
}
)");
  ASSERT_EQ(follow(*module, *large, {1, 0}), "");
  // Neither fills nor results move.
  EXPECT_EQ(opsOf(*module), (std::vector<std::string>{"fill", "assign", "fill", "assign",
                                                      "contract", "contract", "return"}));
  auto step = module->lookupSymbol<func::FuncOp>("step");
  EXPECT_EQ(axesOf(step.getArgumentTypes()[0]), (std::vector<size_t>{0, 1}));
  EXPECT_EQ(axesOf(step.getResultTypes()[1]), (std::vector<size_t>{1, 0}));
}

TEST_F(FollowPlanTest, ASumMayHaveFewerTerms) {
  // The root has the place of the sums, but another form.
  auto large = parse(R"(
#mesh = #weft.mesh<"tp"=4>
#rows = #weft.sharding<#mesh, [{"tp"}]>
#whole = #weft.sharding<#mesh, [{}]>
#id = affine_map<(a) -> (a)>
module attributes {weft.mesh = #mesh} {
  func.func @step(%a: tensor<8xf32, #rows>) -> tensor<8xf32, #whole> {
    %0 = weft.map ins(%a, %a : tensor<8xf32, #rows>, tensor<8xf32, #rows>) maps [#id, #id] -> tensor<8xf32, #rows> {
    ^bb0(%x: f32, %y: f32):
      %s = arith.addf %x, %y : f32
      weft.yield %s : f32
    } loc("optimizer")
    %1 = weft.map ins(%0, %a : tensor<8xf32, #rows>, tensor<8xf32, #rows>) maps [#id, #id] -> tensor<8xf32, #rows> {
    ^bb0(%x: f32, %y: f32):
      %s = arith.addf %x, %y : f32
      weft.yield %s : f32
    } loc("optimizer")
    %2 = weft.all_gather %1 dim 0 over ["tp"] of #mesh : tensor<8xf32, #rows> -> tensor<8xf32, #whole>
    %3 = weft.map ins(%2 : tensor<8xf32, #whole>) maps [#id] -> tensor<8xf32, #whole> {
    ^bb0(%x: f32):
      %r = math.sqrt %x : f32
      weft.yield %r : f32
    } loc("optimizer")
    return %3 : tensor<8xf32, #whole>
  }
}
)");
  auto module = parse(R"(
#mesh = #weft.mesh<"tp"=2>
#id = affine_map<(a) -> (a)>
module attributes {weft.mesh = #mesh} {
  func.func @step(%a: tensor<4xf64>) -> tensor<4xf64> {
    %0 = weft.map ins(%a, %a : tensor<4xf64>, tensor<4xf64>) maps [#id, #id] -> tensor<4xf64> {
    ^bb0(%x: f64, %y: f64):
      %s = arith.addf %x, %y : f64
      weft.yield %s : f64
    } loc("optimizer")
    %1 = weft.map ins(%0 : tensor<4xf64>) maps [#id] -> tensor<4xf64> {
    ^bb0(%x: f64):
      %r = math.sqrt %x : f64
      weft.yield %r : f64
    } loc("optimizer")
    return %1 : tensor<4xf64>
  }
}
)");
  ASSERT_EQ(follow(*module, *large, {}), "");
  EXPECT_EQ(opsOf(*module), (std::vector<std::string>{"map", "all_gather", "map", "return"}));
}

TEST_F(FollowPlanTest, AMaskMayHaveThePlaceOfACast) {
  // A pending sum is rounded, and so masked, where it is complete; in float64 it is not rounded.
  auto large = parse(R"(
#mesh = #weft.mesh<"tp"=4>
#columns = #weft.sharding<#mesh, [{}, {"tp"}]>
#pending = #weft.sharding<#mesh, [{}, {}], unreduced = sum{"tp"}>
#rows = #weft.sharding<#mesh, [{"tp"}, {}]>
#numbers = #weft.sharding<#mesh, [{"tp"}]>
#id = affine_map<(a, b) -> (a, b)>
#first = affine_map<(a, b) -> (a)>
module attributes {weft.mesh = #mesh} {
  func.func @step(%x: tensor<8x8xbf16, #columns>, %w: tensor<8x8xbf16, #columns>) -> tensor<8x8xbf16, #rows> {
    %0 = weft.contract "bk,nk->bn"(%x, %w) : (tensor<8x8xbf16, #columns>, tensor<8x8xbf16, #columns>) -> tensor<8x8xf32, #pending> loc("matmul")
    %1 = weft.reduce_scatter sum %0 dim 0 over ["tp"] of #mesh : tensor<8x8xf32, #pending> -> tensor<8x8xf32, #rows>
    %2 = weft.map ins(%1 : tensor<8x8xf32, #rows>) maps [#id] -> tensor<8x8xbf16, #rows> {
    ^bb0(%v: f32):
      %r = arith.truncf %v : f32 to bf16
      weft.yield %r : bf16
    } loc("norm")
    %3 = weft.iota : tensor<8xi32, #numbers> loc("norm")
    %4 = weft.map ins(%2, %3 : tensor<8x8xbf16, #rows>, tensor<8xi32, #numbers>) maps [#id, #first] -> tensor<8x8xbf16, #rows> {
    ^bb0(%v: bf16, %n: i32):
      %end = arith.constant 7 : i32
      %inside = arith.cmpi slt, %n, %end : i32
      %zero = arith.constant 0.0 : bf16
      %m = arith.select %inside, %v, %zero : bf16
      weft.yield %m : bf16
    } loc("norm")
    return %4 : tensor<8x8xbf16, #rows>
  }
}
)");
  auto module = parse(R"(
#mesh = #weft.mesh<"tp"=2>
#id = affine_map<(a, b) -> (a, b)>
#first = affine_map<(a, b) -> (a)>
module attributes {weft.mesh = #mesh} {
  func.func @step(%x: tensor<4x4xf64>, %w: tensor<4x4xf64>) -> tensor<4x4xf64> {
    %0 = weft.contract "bk,nk->bn"(%x, %w) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64> loc("matmul")
    %1 = weft.iota : tensor<4xi32> loc("matmul")
    %2 = weft.map ins(%0, %1 : tensor<4x4xf64>, tensor<4xi32>) maps [#id, #first] -> tensor<4x4xf64> {
    ^bb0(%v: f64, %n: i32):
      %end = arith.constant 3 : i32
      %inside = arith.cmpi slt, %n, %end : i32
      %zero = arith.constant 0.0 : f64
      %m = arith.select %inside, %v, %zero : f64
      weft.yield %m : f64
    } loc("matmul")
    return %2 : tensor<4x4xf64>
  }
}
)");
  ASSERT_EQ(follow(*module, *large, {}), "");
  EXPECT_EQ(opsOf(*module),
            (std::vector<std::string>{"contract", "iota", "reduce_scatter", "map", "return"}));
}

TEST_F(FollowPlanTest, OnlyWhatIsCutLeavesPendingSums) {
  // tp divides the summed dimension of the large model alone.
  auto large = parse(R"(
#mesh = #weft.mesh<"tp"=2>
#columns = #weft.sharding<#mesh, [{}, {"tp"}]>
#pending = #weft.sharding<#mesh, [{}, {}], unreduced = sum{"tp"}>
#whole = #weft.sharding<#mesh, [{}, {}]>
module attributes {weft.mesh = #mesh} {
  func.func @step(%x: tensor<8x8xf32, #columns>, %w: tensor<8x8xf32, #columns>) -> tensor<8x8xf32, #whole> {
    %0 = weft.contract "bk,nk->bn"(%x, %w) : (tensor<8x8xf32, #columns>, tensor<8x8xf32, #columns>) -> tensor<8x8xf32, #pending> loc("matmul")
    %1 = weft.all_reduce sum %0 over ["tp"] of #mesh : tensor<8x8xf32, #pending> -> tensor<8x8xf32, #whole>
    return %1 : tensor<8x8xf32, #whole>
  }
}
)");
  auto pendingOf = [&](const std::string &type) {
    auto module = parse(R"(
#mesh = #weft.mesh<"tp"=2>
module attributes {weft.mesh = #mesh} {
  func.func @step(%x: )" +
                        type + ", %w: " + type + R"() -> tensor<4x4xf64> {
    %0 = weft.contract "bk,nk->bn"(%x, %w) : ()" +
                        type + ", " + type + R"() -> tensor<4x4xf64> loc("matmul")
    return %0 : tensor<4x4xf64>
  }
}
)");
    EXPECT_EQ(follow(*module, *large, {}), "");
    size_t count = 0;
    module->walk([&](ContractOp op) {
      count = getSharding(op.getResult().getType()).getUnreduced().size();
    });
    return count;
  };
  EXPECT_EQ(pendingOf("tensor<4x6xf64>"), 1u);
  EXPECT_EQ(pendingOf("tensor<4x3xf64>"), 0u);
}

TEST_F(FollowPlanTest, AMaximumOfWhatIsWholeIsNotPending) {
  // The axes divide the scaled dimensions of the large model alone: there the maximum is reduced
  // over one axis after the other.
  auto large = parse(R"(
#mesh = #weft.mesh<"dp"=2, "tp"=3>
#cut = #weft.sharding<#mesh, [{"dp"}, {"tp"}]>
#both = #weft.sharding<#mesh, [], unreduced = max{"dp", "tp"}>
#one = #weft.sharding<#mesh, [], unreduced = max{"dp"}>
#whole = #weft.sharding<#mesh, []>
module attributes {weft.mesh = #mesh} {
  func.func @step(%x: tensor<6x6xf32, #cut>) -> tensor<f32, #whole> {
    %0 = weft.amax %x : tensor<6x6xf32, #cut> -> tensor<f32, #both> loc("scale")
    %1 = weft.all_reduce max %0 over ["tp"] of #mesh : tensor<f32, #both> -> tensor<f32, #one>
    %2 = weft.all_reduce max %1 over ["dp"] of #mesh : tensor<f32, #one> -> tensor<f32, #whole>
    return %2 : tensor<f32, #whole>
  }
}
)");
  auto pendingOf = [&](const std::string &type) {
    auto module = parse(R"(
#mesh = #weft.mesh<"dp"=2, "tp"=3>
module attributes {weft.mesh = #mesh} {
  func.func @step(%x: )" +
                        type + R"() -> tensor<f64> {
    %0 = weft.amax %x : )" +
                        type + R"( -> tensor<f64> loc("scale")
    return %0 : tensor<f64>
  }
}
)");
    EXPECT_EQ(follow(*module, *large, {}), "");
    EXPECT_TRUE(succeeded(mlir::verify(*module)));
    size_t pending = 0;
    module->walk(
        [&](AmaxOp op) { pending = getSharding(op.getResult().getType()).getUnreduced().size(); });
    return pending;
  };
  EXPECT_EQ(pendingOf("tensor<6x6xf64>"), 2u);
  EXPECT_EQ(pendingOf("tensor<6x4xf64>"), 1u);
  EXPECT_EQ(pendingOf("tensor<5x6xf64>"), 1u);
  EXPECT_EQ(pendingOf("tensor<5x4xf64>"), 0u);
}

TEST_F(FollowPlanTest, TheSmallModelMayHavePaddingOfItsOwn) {
  // tp divides the 8 rows of the large model, but not the 5 of the small one.
  auto large = parse(R"(
#mesh = #weft.mesh<"tp"=2>
#rows = #weft.sharding<#mesh, [{"tp"}, {}]>
#whole = #weft.sharding<#mesh, [{}, {}]>
module attributes {weft.mesh = #mesh} {
  weft.variable parameter @w ["ffn", "hidden"] : tensor<8x8xf32, #rows>
  func.func @step(%x: tensor<8x8xf32, #whole>) -> tensor<8x8xf32, #whole> {
    %w = weft.read @w : tensor<8x8xf32, #rows>
    %0 = weft.all_gather %w dim 0 over ["tp"] of #mesh : tensor<8x8xf32, #rows> -> tensor<8x8xf32, #whole>
    %1 = weft.contract "bk,nk->bn"(%x, %0) : (tensor<8x8xf32, #whole>, tensor<8x8xf32, #whole>) -> tensor<8x8xf32, #whole> loc("matmul")
    return %1 : tensor<8x8xf32, #whole>
  }
}
)");
  auto module = parse(R"(
#mesh = #weft.mesh<"tp"=2>
module attributes {weft.mesh = #mesh} {
  weft.variable parameter @w ["ffn", "hidden"] unpadded [5, 4] : tensor<6x4xf64>
  func.func @step(%x: tensor<4x4xf64>) -> tensor<4x5xf64> {
    %w = weft.read @w : tensor<6x4xf64>
    %0 = weft.extract %w from [0, 0] by [1, 1] {weft.of_padding} : tensor<6x4xf64> -> tensor<5x4xf64>
    %1 = weft.contract "bk,nk->bn"(%x, %0) : (tensor<4x4xf64>, tensor<5x4xf64>) -> tensor<4x5xf64> loc("matmul")
    return %1 : tensor<4x5xf64>
  }
}
)");
  ASSERT_EQ(follow(*module, *large, {}), "");
  EXPECT_EQ(opsOf(*module),
            (std::vector<std::string>{"read", "reshard", "extract", "contract", "return"}));
  EXPECT_EQ(axesOf(module->lookupSymbol<VariableOp>("w").getTensorType()),
            (std::vector<size_t>{1, 0}));
}

TEST_F(FollowPlanTest, UnevenShardsAreNotMovedThrough) {
  auto large = parse(R"(
#mesh = #weft.mesh<"tp"=2>
#rows = #weft.sharding<#mesh, [{"tp"}, {}]>
#columns = #weft.sharding<#mesh, [{}, {"tp"}]>
#whole = #weft.sharding<#mesh, [{}, {}]>
module attributes {weft.mesh = #mesh} {
  func.func @step(%x: tensor<8x8xf32, #columns>) -> tensor<8x8xf32, #whole> {
    %0 = weft.all_to_all %x split 0 concat 1 over ["tp"] of #mesh : tensor<8x8xf32, #columns> -> tensor<8x8xf32, #rows>
    %1 = weft.all_gather %0 dim 0 over ["tp"] of #mesh : tensor<8x8xf32, #rows> -> tensor<8x8xf32, #whole>
    %2 = weft.contract "ab->ab"(%1) : (tensor<8x8xf32, #whole>) -> tensor<8x8xf32, #whole> loc("copy")
    return %2 : tensor<8x8xf32, #whole>
  }
}
)");
  auto moved = [&](const std::string &type) {
    auto module = parse("#mesh = #weft.mesh<\"tp\"=2>\nmodule attributes {weft.mesh = #mesh} {\n"
                        "func.func @step(%x: " +
                        type + ") -> " + type +
                        " {\n"
                        "%0 = weft.contract \"ab->ab\"(%x) : (" +
                        type + ") -> " + type + " loc(\"copy\")\n return %0 : " + type + "\n}\n}");
    EXPECT_EQ(follow(*module, *large, {}), "");
    return opsOf(*module);
  };
  EXPECT_EQ(moved("tensor<4x4xf64>"),
            (std::vector<std::string>{"all_to_all", "all_gather", "contract", "return"}));
  EXPECT_EQ(moved("tensor<3x4xf64>"), (std::vector<std::string>{"reshard", "contract", "return"}));
}

TEST_F(FollowPlanTest, AnotherOpIsRefused) {
  auto large = parse(planned);
  auto module = parse(text(small, "loc(\"matmul\")", "loc(\"another\")"));
  EXPECT_NE(follow(*module, *large, {0, 1}).find("another (contract) has no counterpart in @layer"),
            std::string::npos);
}

TEST_F(FollowPlanTest, ALayerThatIsNotThereIsRefused) {
  auto large = parse(planned), module = parse(small);
  EXPECT_NE(follow(*module, *large, {0, 7}).find("is no variable of the plan"), std::string::npos);
}

} // namespace
