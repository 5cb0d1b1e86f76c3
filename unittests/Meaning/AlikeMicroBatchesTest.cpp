//===- AlikeMicroBatchesTest.cpp - which ops repeat with micro-batches ---------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AlikeMicroBatches.h"

#include "SmallPipeline.h"

#include "gtest/gtest.h"

using namespace mlir;
using namespace weft;
using namespace weft::meaning;

namespace {

class AlikeMicroBatchesTest : public testing::Test {
protected:
  /// The micro-batches in the step of a module.
  std::optional<AlikeMicroBatches> find(const std::string &text) {
    module = pipeline.parse(text);
    EXPECT_TRUE(module);
    auto step = module->lookupSymbol<func::FuncOp>("step");
    return findMicroBatches(*step.getOps<CallOp>().begin());
  }
  /// Of three micro-batches, with `change` in the place of `what`.
  static std::string changed(const std::string &what, const std::string &change) {
    std::string text = test::SmallPipeline::text(3);
    text.replace(text.find(what), what.size(), change);
    return text;
  }

  test::SmallPipeline pipeline;
  OwningOpRef<ModuleOp> module;
};

TEST_F(AlikeMicroBatchesTest, HaveTheOpsOfAllStages) {
  std::optional<AlikeMicroBatches> found = find(test::SmallPipeline::text(3));
  ASSERT_TRUE(found);
  ASSERT_EQ(found->ops.size(), 3U);
  for (ArrayRef<Operation *> ops : found->ops) {
    EXPECT_EQ(ops.size(), 6U); // Four calls, two transfers.
  }
  // The loss, and a gradient in each stage, in the order of their first use.
  ASSERT_EQ(found->totals.size(), 3U);
  EXPECT_EQ(found->totals[0].op, 2U);
  EXPECT_EQ(found->totals[1].op, 3U);
  EXPECT_EQ(found->totals[1].result, 1U);
  EXPECT_EQ(found->totals[2].op, 5U);
  EXPECT_TRUE(found->shared.empty());
}

TEST_F(AlikeMicroBatchesTest, AreSeveral) { EXPECT_FALSE(find(test::SmallPipeline::text(1))); }

TEST_F(AlikeMicroBatchesTest, CallTheSameFunctions) {
  EXPECT_FALSE(find(changed("%x1 = weft.call @forward_0(%c1)", "%x1 = weft.call @forward_0(%c0)")));
  EXPECT_FALSE(
      find(changed("%t2 = weft.transfer %x2 from 0 to 1", "%t2 = weft.transfer %x2 from 1 to 0")));
}

TEST_F(AlikeMicroBatchesTest, ReadTheirOwnValues) {
  EXPECT_FALSE(find(changed("@backward_1(%c2, %g2, %t2)", "@backward_1(%c2, %g2, %t1)")));
  EXPECT_FALSE(find(changed("@backward_0(%c2, %e2, %u2)", "@backward_0(%c2, %e1, %u2)")));
}

TEST_F(AlikeMicroBatchesTest, GiveOthersTheLastTotalsAlone) {
  EXPECT_FALSE(find(changed("weft.assign @w0, %e3", "weft.assign @w0, %e2")));
  EXPECT_FALSE(find(changed("weft.assign @w0, %e3", "weft.assign @w0, %u2")));
}

} // namespace
