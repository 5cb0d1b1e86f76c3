//===- NewOpTest.cpp - search with ops of another dialect -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A dialect of this file has an op with a factor rule and a cost, one with a rule alone, and one
// with neither. The search knows none of them: its results follow from the ops' interfaces alone.
//
//===----------------------------------------------------------------------===//

#include "weft/Dialect/Weft/IR/Sharding.h"
#include "weft/Dialect/Weft/IR/Weft.h"
#include "weft/Pipeline/Plan/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace weft;

namespace {

/// The answers of the ops: the letters of "ij" that cannot be cut, and the operations of
/// `new.blend`.
struct Answers {
  std::string mustReplicate;
  double flops;
};
Answers answers;

/// One tensor to another of the same shape.
class BlendOp
    : public Op<BlendOp, OpTrait::OneResult, OpTrait::OneOperand, OpTrait::ZeroRegions,
                OpTrait::ZeroSuccessors, ShardableOpInterface::Trait, CostOpInterface::Trait> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(BlendOp)
  using Op::Op;
  static StringRef getOperationName() { return "new.blend"; }
  static ArrayRef<StringRef> getAttributeNames() { return {}; }

  FactorRule getFactorRule() {
    return makeFactorRule(getOperation(), {"ij"}, {"ij"}, answers.mustReplicate);
  }
  OpCost getCost() {
    OpCost cost = elementwiseCost(getOperation(), 1);
    cost.flops.constant = answers.flops;
    return cost;
  }
};

/// The same, but it does not say what it costs.
class PlainOp : public Op<PlainOp, OpTrait::OneResult, OpTrait::OneOperand, OpTrait::ZeroRegions,
                          OpTrait::ZeroSuccessors, ShardableOpInterface::Trait> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PlainOp)
  using Op::Op;
  static StringRef getOperationName() { return "new.plain"; }
  static ArrayRef<StringRef> getAttributeNames() { return {}; }

  FactorRule getFactorRule() {
    return makeFactorRule(getOperation(), {"ij"}, {"ij"}, answers.mustReplicate);
  }
};

/// It does not say how it may be sharded either.
class SilentOp : public Op<SilentOp, OpTrait::OneResult, OpTrait::OneOperand, OpTrait::ZeroRegions,
                           OpTrait::ZeroSuccessors> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(SilentOp)
  using Op::Op;
  static StringRef getOperationName() { return "new.silent"; }
  static ArrayRef<StringRef> getAttributeNames() { return {}; }
};

class NewDialect : public Dialect {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(NewDialect)
  explicit NewDialect(MLIRContext *context)
      : Dialect(getDialectNamespace(), context, TypeID::get<NewDialect>()) {
    addOperations<BlendOp, PlainOp, SilentOp>();
  }
  static StringRef getDialectNamespace() { return "new"; }
};

constexpr const char *kMachine =
    "version: 1 name: 'm' nodes: 1 devices_per_node: 2 device { name: 'd' peak_flops { precision: "
    "F64 flops: 1e9 } memory_bytes: 1000000000 memory_bandwidth_bytes_per_second: 1e10 } links { "
    "name: 'l' scope: NODE latency_seconds: 1e-6 bandwidth_bytes_per_second: 1e9 }";

/// A step that blends a variable. It is whole before and after.
std::string stepWith(const std::string &op) {
  return "module attributes {weft.mesh = #weft.mesh<\"tp\"=2>} {\n"
         "weft.variable parameter @x [\"a\", \"b\"] {weft.pins = [[], []]} : tensor<64x64xf64>\n"
         "func.func @step() {\n"
         "%x = weft.read @x : tensor<64x64xf64>\n"
         "%y = \"" +
         op +
         "\"(%x) : (tensor<64x64xf64>) -> tensor<64x64xf64>\n"
         "weft.assign @x, %y : tensor<64x64xf64>\n"
         "return\n}\n}\n";
}

/// Returns the sharding that a search finds for the op's result, or the error of a failed search.
std::string search(const std::string &op) {
  DialectRegistry registry;
  registry.insert<WeftDialect, func::FuncDialect, NewDialect>();
  MLIRContext context(registry);
  context.loadAllAvailableDialects();
  std::string error;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    error = diagnostic.str();
    return success();
  });
  auto module = parseSourceString<ModuleOp>(stepWith(op), &context);
  PassManager manager(&context);
  SearchShardingsPassOptions options;
  options.machine = kMachine;
  manager.addPass(createSearchShardingsPass(options));
  if (!module || failed(manager.run(*module))) {
    return error;
  }
  std::string found;
  module->walk([&](ShardableOpInterface op) {
    llvm::raw_string_ostream stream(found);
    llvm::interleaveComma(getSharding(op->getResult(0).getType()).getDims(), stream);
  });
  return found;
}

constexpr double kMany = 1e9; // 1 s whole, where moving the result takes less than a millisecond.

TEST(NewOp, IsCutAsItsRuleAllows) {
  answers = {"", kMany};
  std::string anyhow = search("new.blend");
  EXPECT_TRUE(anyhow == "[\"tp\"], []" || anyhow == "[], [\"tp\"]") << anyhow;
  answers = {"i", kMany};
  EXPECT_EQ(search("new.blend"), "[], [\"tp\"]");
  answers = {"j", kMany};
  EXPECT_EQ(search("new.blend"), "[\"tp\"], []");
  answers = {"ij", kMany};
  EXPECT_EQ(search("new.blend"), "[], []");
}

TEST(NewOp, IsCutWhereItsCostIsWorthIt) {
  answers = {"i", kMany};
  EXPECT_EQ(search("new.blend"), "[], [\"tp\"]");
  answers = {"i", 1};
  EXPECT_EQ(search("new.blend"), "[], []");
  // The cost that the op states is all the search knows: without it, the op counts as cheap.
  EXPECT_EQ(search("new.plain"), "[], []");
}

TEST(NewOp, IsRefusedWhereItSaysNothing) {
  EXPECT_EQ(search("new.silent"),
            "'new.silent' op search-shardings: says nothing of how it may be sharded");
}

} // namespace
