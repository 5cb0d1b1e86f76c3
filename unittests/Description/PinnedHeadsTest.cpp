//===- PinnedHeadsTest.cpp - pins where key and value heads are few -------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Description/Pins.h"

#include "Helpers.h"

using namespace weft::desc;
using namespace weft::desc::test;

namespace {

using Axes = std::vector<std::string>;

/// Returns the plan of `pins` for a model of so many key and value heads, each of `group` query
/// heads.
PlanSpec fitted(const std::string &pins, int64_t kvHeads, int64_t group) {
  ModelSpec model;
  model.kvHeads = kvHeads;
  model.heads = kvHeads * group;
  return fitPins(*applyPins({pins}), model);
}

Axes axesOf(const PlanSpec &plan, const std::string &dimension, const std::string &value = "x") {
  return axesFor(plan.shardings, value, dimension).value_or(Axes{"none"});
}

} // namespace

TEST(PinnedHeads, AreLeftWhereTheyDivide) {
  EXPECT_TRUE(fitted("tp=4", 4, 2) == *applyPins({"tp=4"}));
  EXPECT_TRUE(fitted("dp=4", 2, 2) == *applyPins({"dp=4"}));
}

TEST(PinnedHeads, AreLeftToPaddingWithoutGroups) {
  EXPECT_TRUE(fitted("tp=4", 6, 1) == *applyPins({"tp=4"}));
  // Two heads of one each of four ranks are fewer than three of two.
  EXPECT_TRUE(fitted("tp=4", 7, 2) == *applyPins({"tp=4"}));
}

TEST(PinnedHeads, TwoAxesForFewHeads) {
  PlanSpec plan = fitted("dp=2,tp=4", 2, 4);
  EXPECT_EQ(printPlan(plan), R"(version: 1
mesh {
  axis { name: "dp" size: 2 }
  axis { name: "tp" size: 2 }
  axis { name: "tp_group" size: 2 }
}
sharding { value: "*" dimension: "batch" axes: ["dp"] }
sharding { value: "*" dimension: "kv_heads" axes: ["tp"] }
sharding { value: "*" dimension: "group" axes: ["tp_group"] }
sharding { value: "*" dimension: "ffn" axes: ["tp", "tp_group"] }
sharding { value: "*" dimension: "vocab" axes: ["tp", "tp_group"] }
)");
}

TEST(PinnedHeads, GroupsAloneWhereHeadsHaveNoCommonFactor) {
  PlanSpec plan = fitted("tp=2", 3, 4);
  ASSERT_EQ(plan.mesh.size(), 1U);
  EXPECT_EQ(axesOf(plan, "kv_heads"), Axes{"none"});
  EXPECT_EQ(axesOf(plan, "group"), Axes{"tp"});
  EXPECT_EQ(axesOf(plan, "ffn"), Axes{"tp"});
}

TEST(PinnedHeads, OtherPinsGoAlong) {
  PlanSpec plan = fitted("dp=2,tp=4,cp=2:all-to-all,sp=true,zero=1", 2, 4);
  EXPECT_EQ(axesOf(plan, "sequence", "mlp_norm"), (Axes{"cp", "tp", "tp_group"}));
  // An axis that exchanges the sequence for heads cuts query heads too.
  EXPECT_EQ(axesOf(plan, "kv_heads", "attention"), Axes{"tp"});
  EXPECT_EQ(axesOf(plan, "group", "attention"), (Axes{"tp_group", "cp"}));
  // A weight that matmuls cut lies cut so.
  EXPECT_EQ(axesFor(plan.homes, "adam_m/w", "group"), std::nullopt);
  EXPECT_EQ(axesFor(plan.homes, "adam_m/w", "hidden"), (Axes{"dp", "cp"}));
}
