//===- LayoutSpacesTest.cpp - tests of what a search considers ------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LayoutSpaces.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace weft;

namespace {

class LayoutSpacesTest : public testing::Test {
protected:
  LayoutSpacesTest() { context.loadDialect<WeftDialect>(); }

  LayoutSpaces spacesOf(ArrayRef<StringRef> names, ArrayRef<int64_t> sizes) {
    auto attributes =
        llvm::map_to_vector(names, [&](StringRef name) { return StringAttr::get(&context, name); });
    return LayoutSpaces(MeshAttr::get(&context, attributes, sizes));
  }

  MLIRContext context;
};

TEST_F(LayoutSpacesTest, ConsidersAllOnFourParts) {
  LayoutSpaces spaces = spacesOf({"a", "b", "c", "d"}, {2, 2, 2, 2});
  EXPECT_TRUE(spaces.areAllSearched());
  EXPECT_TRUE(spaces.isSearched({1, 2, 1, 2}));
  EXPECT_EQ(spaces.searched(2).size(), 4u * 4 * 4 * 4);
}

TEST_F(LayoutSpacesTest, ConsidersTwoRunsWithAnyBorder) {
  LayoutSpaces spaces = spacesOf({"a", "b", "c", "d", "e"}, {2, 2, 2, 2, 2});
  EXPECT_FALSE(spaces.areAllSearched());
  EXPECT_TRUE(spaces.isSearched({1, 1, 1, 1, 1}));
  EXPECT_TRUE(spaces.isSearched({1, 0, 0, 0, 0}));
  EXPECT_TRUE(spaces.isSearched({1, 1, 1, 2, 2}));
  EXPECT_FALSE(spaces.isSearched({1, 2, 1, 1, 1}));
}

TEST_F(LayoutSpacesTest, ConsidersThreeRunsAtAxes) {
  LayoutSpaces spaces = spacesOf({"a:(1)2", "a:(2)2", "b", "c:(1)2", "c:(2)2"}, {2, 2, 8, 2, 2});
  EXPECT_TRUE(spaces.isSearched({1, 1, 2, 3, 3}));
  EXPECT_TRUE(spaces.isSearched({1, 1, 2, 1, 1}));
  EXPECT_FALSE(spaces.isSearched({1, 2, 2, 3, 3}));
}

TEST_F(LayoutSpacesTest, JoinsTheSmallestOfMoreThanThreeAxes) {
  LayoutSpaces spaces = spacesOf({"a", "b", "c", "d", "e"}, {16, 2, 4, 2, 16});
  EXPECT_TRUE(spaces.isSearched({1, 2, 2, 2, 3}));
  EXPECT_FALSE(spaces.isSearched({1, 1, 2, 2, 3}));
}

TEST_F(LayoutSpacesTest, LeavesPinnedPartsFree) {
  LayoutSpaces spaces = spacesOf({"a", "b", "c", "d", "e"}, {2, 2, 2, 2, 2});
  EXPECT_FALSE(spaces.isSearched({1, 3, 1, 2, 2}));
  EXPECT_TRUE(spaces.isSearched({1, 3, 1, 2, 2}, {1}));
}

TEST_F(LayoutSpacesTest, FreesPinnedPartsOnlyWhereNothingElseIsLeft) {
  LayoutSpaces spaces = spacesOf({"a", "b", "c", "d", "e"}, {2, 2, 2, 2, 2});
  planner::LayoutSpace &space = spaces.ofRank(1);
  uint32_t searched = space.numberOf({0, 1, 1, 1, 1}), other = space.numberOf({0, 1, 0, 0, 0});
  EXPECT_EQ(spaces.searchedOf(1, {searched, other}, {1}), std::vector<uint32_t>{searched});
  EXPECT_EQ(spaces.searchedOf(1, other, {1}), std::vector<uint32_t>{other});
}

TEST_F(LayoutSpacesTest, ValuesMayHaveLayoutsThatWereAdded) {
  LayoutSpaces spaces = spacesOf({"a", "b", "c", "d", "e"}, {2, 2, 2, 2, 2});
  uint32_t layout = spaces.ofRank(1).numberOf({1, 0, 1, 0, 1});
  size_t count = spaces.searched(1).size();
  EXPECT_FALSE(llvm::is_contained(spaces.searched(1), layout));
  spaces.add(1, layout);
  spaces.add(1, spaces.ofRank(1).numberOf({1, 1, 1, 1, 1})); // Searched anyway.
  EXPECT_EQ(spaces.searchedOf(1, layout, {}), std::vector<uint32_t>{layout});
  EXPECT_TRUE(llvm::is_contained(spaces.searched(1), layout));
  EXPECT_EQ(spaces.searched(1).size(), count + 1);
}

} // namespace
