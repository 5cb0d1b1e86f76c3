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

TEST(PinnedHeads, SubAxesForFewHeads) {
  PlanSpec plan = fitted("dp=2,tp=4", 2, 4);
  EXPECT_EQ(printPlan(plan), R"(version: 1
mesh {
  axis { name: "dp" size: 2 }
  axis { name: "tp" size: 4 sub_axes: [2, 2] }
}
sharding { value: "*" dimension: "batch" axes: ["dp"] }
sharding { value: "*" dimension: "kv_heads" axes: ["tp:(1)2"] }
sharding { value: "*" dimension: "group" axes: ["tp:(2)2"] }
sharding { value: "*" dimension: "ffn" axes: ["tp"] }
sharding { value: "*" dimension: "vocab" axes: ["tp"] }
)");
}

TEST(PinnedHeads, GroupsAloneWhereHeadsHaveNoCommonFactor) {
  PlanSpec plan = fitted("tp=2", 3, 4);
  ASSERT_EQ(plan.mesh.size(), 1U);
  EXPECT_EQ(axesOf(plan, "kv_heads"), Axes{"none"});
  EXPECT_EQ(axesOf(plan, "group"), Axes{"tp"});
  EXPECT_EQ(axesOf(plan, "ffn"), Axes{"tp"});
}

TEST(PinnedHeads, RanksHaveFewKeyHeadsToo) {
  PlanSpec plan = fitted("tp=4", 5, 3); // Five query heads and as many keys, or six and two.
  EXPECT_EQ(axesOf(plan, "kv_heads"), Axes{"tp"});
  EXPECT_EQ(axesOf(plan, "group"), Axes{"none"});
}

TEST(PinnedHeads, MoreRanksThanHeads) {
  // Ranks without a head cost less than a second key head on each.
  for (auto [pin, kvHeads, group] : {std::tuple("tp=3", 2, 4), std::tuple("tp=4", 3, 3),
                                     std::tuple("tp=5", 2, 2), std::tuple("tp=7", 2, 3)}) {
    PlanSpec plan = fitted(pin, kvHeads, group);
    EXPECT_EQ(axesOf(plan, "kv_heads"), Axes{"tp"}) << pin;
    EXPECT_EQ(axesOf(plan, "group"), Axes{"none"}) << pin;
  }
  // Here a second key head saves half of the query heads.
  EXPECT_EQ(axesOf(fitted("tp=5", 2, 4), "kv_heads"), Axes{"none"});
  EXPECT_EQ(axesOf(fitted("tp=5", 2, 4), "group"), Axes{"tp"});
  // One of the parts that cut six ways into four heads is longer than its dimension.
  PlanSpec plan = fitted("tp=6", 2, 2);
  EXPECT_EQ(axesOf(plan, "kv_heads"), Axes{"tp:(1)3"});
  EXPECT_EQ(axesOf(plan, "group"), Axes{"tp:(3)2"});
  // Without groups there is nothing to choose.
  EXPECT_TRUE(fitted("tp=6", 4, 1) == *applyPins({"tp=6"}));
  EXPECT_TRUE(fitted("cp=8:all-to-all", 4, 1) == *applyPins({"cp=8:all-to-all"}));
}

TEST(PinnedHeads, OtherPinsGoAlong) {
  PlanSpec plan = fitted("dp=2,tp=4,cp=2:all-to-all,sp=true,zero=1", 2, 4);
  EXPECT_EQ(axesOf(plan, "sequence", "mlp_norm"), (Axes{"cp", "tp:(1)2", "tp:(2)2"}));
  // An axis that exchanges the sequence for heads cuts query heads too.
  EXPECT_EQ(axesOf(plan, "kv_heads", "attention"), Axes{"tp:(1)2"});
  EXPECT_EQ(axesOf(plan, "group", "attention"), (Axes{"tp:(2)2", "cp"}));
  // A weight that matmuls cut lies cut so.
  EXPECT_EQ(axesFor(plan.homes, "adam_m/w", "group"), std::nullopt);
  EXPECT_EQ(axesFor(plan.homes, "adam_m/w", "hidden"), (Axes{"dp", "cp"}));
}

TEST(PinnedHeads, AnyAxisThatCutsHeads) {
  // Here cp alone exchanges the sequence for heads, of which there are two.
  PlanSpec plan = fitted("cp=4:all-to-all", 2, 2);
  EXPECT_EQ(axesOf(plan, "kv_heads", "attention"), Axes{"cp:(1)2"});
  EXPECT_EQ(axesOf(plan, "group", "attention"), Axes{"cp:(2)2"});
  EXPECT_EQ(axesOf(plan, "sequence"), (Axes{"cp:(1)2", "cp:(2)2"}));
  // What tp leaves of the heads, cp cuts in part.
  plan = fitted("tp=2,cp=4:all-to-all", 4, 2);
  EXPECT_EQ(axesOf(plan, "kv_heads"), Axes{"tp"});
  EXPECT_EQ(axesOf(plan, "kv_heads", "attention"), (Axes{"tp", "cp:(1)2"}));
  EXPECT_EQ(axesOf(plan, "group", "attention"), Axes{"cp:(2)2"});
}

TEST(PinnedHeads, WaysOfHeads) {
  ModelSpec model;
  model.kvHeads = 2;
  model.heads = 8;
  EXPECT_EQ(waysOfHeads(model, 2), 2);
  EXPECT_EQ(waysOfHeads(model, 8), 2);
  // Three ranks have four query heads in both ways, but one key head, not two.
  EXPECT_EQ(waysOfHeads(model, 3), 3);
  // Three ranks have four query heads each in both ways; the greater number is taken.
  model.kvHeads = 4;
  EXPECT_EQ(waysOfHeads(model, 3), 3);
  model.kvHeads = 3;
  model.heads = 12;
  EXPECT_EQ(waysOfHeads(model, 2), 1);
}
