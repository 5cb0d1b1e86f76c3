//===- MapBuildersTest.cpp - tests of maps that passes build --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Parsed.h"

#include "weft/Dialect/Weft/IR/MapBuilders.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Verifier.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace weft;
using namespace weft::test;

namespace {

/// The number of operands of each map of a sum of `count` scalars, in order. Expects that each map
/// begins with the sum before it.
std::vector<unsigned> operandsOfSum(unsigned count) {
  OpBuilder builder(&context());
  Location loc = builder.getUnknownLoc();
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  builder.setInsertionPointToEnd(module->getBody());
  SmallVector<Type> types(count, RankedTensorType::get({}, builder.getF32Type()));
  auto function =
      func::FuncOp::create(builder, loc, "f", builder.getFunctionType(types, types.front()));
  builder.setInsertionPointToStart(function.addEntryBlock());
  Value sum = createSum(builder, loc, function.getArguments());
  func::ReturnOp::create(builder, loc, sum);
  EXPECT_TRUE(succeeded(verify(*module)));

  std::vector<unsigned> operands;
  Value before = function.getArgument(0);
  unsigned next = 1;
  for (auto map : function.getOps<MapOp>()) {
    operands.push_back(map.getNumOperands());
    EXPECT_EQ(map.getInputs().front(), before);
    for (Value input : map.getInputs().drop_front()) {
      EXPECT_EQ(input, function.getArgument(next++)) << "terms are added in their order";
    }
    before = map.getResult(0);
  }
  EXPECT_EQ(sum, before);
  EXPECT_EQ(next, count);
  return operands;
}

TEST(CreateSum, ManyTermsAreSumsOfPartialSums) {
  EXPECT_EQ(operandsOfSum(1), std::vector<unsigned>());
  EXPECT_EQ(operandsOfSum(2), std::vector<unsigned>({2}));
  EXPECT_EQ(operandsOfSum(64), std::vector<unsigned>({64}));
  EXPECT_EQ(operandsOfSum(65), std::vector<unsigned>({64, 2}));
  EXPECT_EQ(operandsOfSum(130), std::vector<unsigned>({64, 64, 4}));
}

} // namespace
