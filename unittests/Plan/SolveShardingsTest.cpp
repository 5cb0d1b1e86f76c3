//===- SolveShardingsTest.cpp - choices, and problems without any ---------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SolveShardings.h"

#include "ReshardTables.h"
#include "ShardingProblem.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace weft;

namespace {

/// A problem of three values on a mesh of one axis.
class SolveShardingsTest : public testing::Test {
protected:
  SolveShardingsTest() : shardings(*module, tables, nullptr) {
    shardings.problem.nodes = {
        {"x", {{"whole", 2, 0}, {"cut", 1, 0}}}, {"y", {{"cut", 1, 0}}}, {"z", {{"whole", 1, 0}}}};
  }

  static MLIRContext *load(MLIRContext &context) {
    context.loadDialect<WeftDialect>();
    return &context;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(load(context)));
  LayoutSpaces spaces{MeshAttr::get(&context, {StringAttr::get(&context, "dp")}, {2})};
  ReshardTables tables{spaces, nullptr};
  ShardingProblem shardings;
};

TEST_F(SolveShardingsTest, TakesTheOptionsThatTakeLeast) {
  EXPECT_EQ(chooseShardings(shardings).choice, (planner::Choice{1, 0, 0}));
}

TEST_F(SolveShardingsTest, HasNoChoiceWherePinsLeaveAValueNoSharding) {
  shardings.problem.nodes[1].options.clear();
  ShardingChoice found = chooseShardings(shardings);
  EXPECT_TRUE(found.choice.empty());
  EXPECT_FALSE(found.solution.found());
  EXPECT_EQ(found.solution.lowerBound, planner::kInfinity);
}

} // namespace
