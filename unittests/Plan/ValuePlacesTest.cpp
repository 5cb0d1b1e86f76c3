//===- ValuePlacesTest.cpp - tests of where values go ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ValuePlaces.h"

#include "weft/Dialect/Weft/IR/ScalarOps.h"
#include "weft/Dialect/Weft/IR/Weft.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace weft;

namespace {

constexpr const char *kMap =
    " maps [affine_map<(i) -> (i)>] -> tensor<4xf32> {\n"
    "^bb0(%a: f32):\n  %b = math.tanh %a : f32\n  weft.yield %b : f32\n}\n";

class ValuePlacesTest : public testing::Test {
protected:
  ValuePlacesTest() {
    DialectRegistry registry;
    registry.insert<WeftDialect, func::FuncDialect, math::MathDialect>();
    registerScalarOpModels(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  /// Parses functions that read variable @x, and adds all of them.
  void parse(const std::string &functions) {
    module = parseSourceString<ModuleOp>(
        "weft.variable parameter @x [\"hidden\"] : tensor<4xf32>\n" + functions, &context);
    ASSERT_TRUE(module);
    symbols.emplace(*module);
    places.emplace(*symbols);
    for (auto function : module->getOps<func::FuncOp>()) {
      if (!function.isExternal()) {
        places->add(function);
      }
    }
  }

  /// The values of all results of `OpTy`.
  template <typename OpTy> std::vector<Value> valuesOf() {
    std::vector<Value> values;
    module->walk([&](OpTy op) { values.push_back(op->getResult(0)); });
    return values;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  std::optional<SymbolTable> symbols;
  std::optional<ValuePlaces> places;
};

/// A function that passes @x through `count` equal maps to a function that is called.
std::string chain(int count) {
  std::string text = "func.func private @end(%x: tensor<4xf32>) { return }\n"
                     "func.func @step() {\n  %v0 = weft.read @x : tensor<4xf32>\n";
  for (int i = 0; i < count; ++i) {
    text += "  %v" + std::to_string(i + 1) + " = weft.map ins(%v" + std::to_string(i) +
            " : tensor<4xf32>)" + kMap;
  }
  return text + "  weft.call @end(%v" + std::to_string(count) +
         ") label \"end\" : (tensor<4xf32>) -> ()\n  return\n}\n";
}

TEST_F(ValuePlacesTest, EachUseOfAChainIsFollowedOnce) {
  for (int count : {100, 200}) {
    parse(chain(count));
    std::set<uint32_t> numbers;
    for (Value value : valuesOf<MapOp>()) {
      numbers.insert(places->of(value));
      EXPECT_EQ(places->of(value), places->of(value));
    }
    EXPECT_EQ(numbers.size(), size_t(count)) << "each is another number of maps before the end";
    EXPECT_EQ(places->getNumFollowed(), size_t(count) + 1) << "that of the read is the first";
  }
}

TEST_F(ValuePlacesTest, ValuesOfEqualOpsToEqualPlacesAreAtOne) {
  parse("func.func private @end(%x: tensor<4xf32>) { return }\n"
        "func.func private @other(%x: tensor<4xf32>) { return }\n"
        "func.func @step() {\n"
        "  %xa = weft.read @x : tensor<4xf32>\n"
        "  %xb = weft.read @x : tensor<4xf32>\n"
        "  %xc = weft.read @x : tensor<4xf32>\n"
        "  %p = weft.map ins(%xa : tensor<4xf32>)" +
        std::string(kMap) + "  %q = weft.map ins(%xb : tensor<4xf32>)" + kMap +
        "  %r = weft.map ins(%xc : tensor<4xf32>)" + kMap +
        "  weft.call @end(%p) label \"p\" : (tensor<4xf32>) -> ()\n"
        "  weft.call @end(%q) label \"q\" : (tensor<4xf32>) -> ()\n"
        "  weft.call @other(%r) label \"r\" : (tensor<4xf32>) -> ()\n"
        "  return\n}\n");
  std::vector<Value> reads = valuesOf<ReadOp>();
  EXPECT_EQ(places->of(reads[0]), places->of(reads[1]));
  EXPECT_NE(places->of(reads[0]), places->of(reads[2]));
}

} // namespace
