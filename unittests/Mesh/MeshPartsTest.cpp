//===- MeshPartsTest.cpp - sub-axes of a mesh -----------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Mesh/MeshParts.h"

#include <gtest/gtest.h>

using namespace weft;

namespace {

using Names = std::vector<std::string>;

/// dp=2, tp=8 in parts of 2 and 4, ep=12 in parts of 2, 3 and 2.
MeshParts mesh() { return MeshParts({{"dp", {2}}, {"tp", {2, 4}}, {"ep", {2, 3, 2}}}); }

std::optional<Names> named(Names names) { return names; }

} // namespace

TEST(SubAxis, Names) {
  std::optional<SubAxis> axis = parseSubAxis("tp:(2)4");
  ASSERT_TRUE(axis);
  EXPECT_EQ(axis->axis, "tp");
  EXPECT_EQ(axis->before, 2);
  EXPECT_EQ(axis->size, 4);
  EXPECT_EQ(axis->name(), "tp:(2)4");
  EXPECT_TRUE(parseSubAxis("tp:(1)1048576"));
  for (const char *wrong :
       {"", "tp", ":(1)2", "tp:", "tp:(", "tp:()2", "tp:(1)", "tp:(1)2x", "tp:(1) 2", "tp:(0)2",
        "tp:(01)2", "tp:(-1)2", "tp(1)2", "tp:(1)1048577", "tp:(1)99999999999999999999"}) {
    EXPECT_FALSE(parseSubAxis(wrong)) << wrong;
  }
}

TEST(MeshParts, PartsHaveNamesAndSizes) {
  EXPECT_EQ(mesh().partNames(),
            (Names{"dp", "tp:(1)2", "tp:(2)4", "ep:(1)2", "ep:(2)3", "ep:(6)2"}));
  EXPECT_EQ(mesh().partSizes(), (std::vector<int64_t>{2, 2, 4, 2, 3, 2}));
  MeshParts again(mesh().partNames(), mesh().partSizes());
  ASSERT_EQ(again.axes().size(), 3U);
  EXPECT_EQ(again.axes()[2].parts, (std::vector<int64_t>{2, 3, 2}));
  EXPECT_EQ(again.axes()[2].size(), 12);
  EXPECT_EQ(again.text(), "dp=2 tp=2x4 ep=2x3x2");
}

TEST(MeshParts, WrongNamesShow) {
  // A part alone is its axis, and the number before it follows from its neighbors.
  EXPECT_EQ(MeshParts({"tp:(1)2"}, {2}).partNames(), Names{"tp"});
  EXPECT_EQ(MeshParts({"tp:(1)2", "tp:(4)2"}, {2, 2}).partNames(), (Names{"tp:(1)2", "tp:(2)2"}));
}

TEST(MeshParts, PartsOfANameAreItsRun) {
  EXPECT_EQ(mesh().partsOf("dp"), named({"dp"}));
  EXPECT_EQ(mesh().partsOf("dp:(1)2"), named({"dp"}));
  EXPECT_EQ(mesh().partsOf("tp"), named({"tp:(1)2", "tp:(2)4"}));
  EXPECT_EQ(mesh().partsOf("tp:(2)4"), named({"tp:(2)4"}));
  EXPECT_EQ(mesh().partsOf("ep:(1)6"), named({"ep:(1)2", "ep:(2)3"}));
  EXPECT_EQ(mesh().partsOf("ep:(2)6"), named({"ep:(2)3", "ep:(6)2"}));
  for (const char *wrong : {"xp", "tp:(1)4", "tp:(4)2", "tp:(2)8", "tp:(8)2", "ep:(1)4", "ep:(3)2",
                            "ep:(2)1", "xp:(1)2"}) {
    EXPECT_FALSE(mesh().partsOf(wrong)) << wrong;
  }
}

TEST(MeshParts, JoinIsTheReverse) {
  EXPECT_EQ(mesh().join(mesh().partNames()), (Names{"dp", "tp", "ep"}));
  EXPECT_EQ(mesh().join({"ep:(2)3", "ep:(6)2", "tp:(1)2"}), (Names{"ep:(2)6", "tp:(1)2"}));
  // Minor before major is another order.
  EXPECT_EQ(mesh().join({"tp:(2)4", "tp:(1)2"}), (Names{"tp:(2)4", "tp:(1)2"}));
  EXPECT_EQ(mesh().join({"other", "dp"}), (Names{"other", "dp"}));
  EXPECT_EQ(mesh().join({}), Names{});
}

TEST(MeshParts, SizedNames) {
  EXPECT_EQ(mesh().sized({"dp", "tp:(1)2", "tp:(2)4"}, " * "), "dp=2 * tp=8");
  EXPECT_EQ(mesh().sized({"tp:(2)4"}, ", "), "tp:(2)4");
}
