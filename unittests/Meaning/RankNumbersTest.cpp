//===- RankNumbersTest.cpp - one number for each rank -----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RankNumbers.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace weft;
using namespace weft::meaning;

namespace {

/// dp=2, tp=3: ranks 0 to 2 are at dp 0.
struct RankNumbersTest : testing::Test {
  RankNumbersTest() { context.loadDialect<WeftDialect>(); }

  MeshAttr mesh() {
    return MeshAttr::get(
        &context, {StringAttr::get(&context, "dp"), StringAttr::get(&context, "tp")}, {2, 3});
  }
  ArrayAttr axes(std::vector<StringRef> names) {
    SmallVector<Attribute> attributes;
    for (StringRef name : names) {
      attributes.push_back(StringAttr::get(&context, name));
    }
    return ArrayAttr::get(&context, attributes);
  }
  static std::vector<int64_t> vectorOf(ArrayRef<int64_t> values) { return values.vec(); }

  MLIRContext context;
};

} // namespace

TEST_F(RankNumbersTest, TheLastAxisVariesFastest) {
  RankNumbers ranks(mesh());
  EXPECT_EQ(vectorOf(ranks.values(*ranks.coordinate(StringAttr::get(&context, "dp")))),
            (std::vector<int64_t>{0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(vectorOf(ranks.values(*ranks.coordinate(StringAttr::get(&context, "tp")))),
            (std::vector<int64_t>{0, 1, 2, 0, 1, 2}));
  EXPECT_FALSE(ranks.coordinate(StringAttr::get(&context, "pp")));
}

TEST_F(RankNumbersTest, TheFirstAxisOfAGroupIsMajor) {
  RankNumbers ranks(mesh());
  EXPECT_EQ(vectorOf(ranks.values(*ranks.shard(axes({"tp", "dp"})))),
            (std::vector<int64_t>{0, 2, 4, 1, 3, 5}));
  EXPECT_EQ(ranks.shard(axes({})), ranks.constant(0));
  EXPECT_EQ(ranks.groups(axes({"tp", "tp"})), nullptr);
}

TEST_F(RankNumbersTest, EqualFunctionsHaveOneNumber) {
  RankNumbers ranks(mesh());
  uint32_t place = *ranks.shard(axes({"tp"}));
  EXPECT_EQ(ranks.multiply(place, ranks.constant(4)), ranks.add(ranks.constant(0), place, 4));
  EXPECT_EQ(ranks.divide(ranks.multiply(place, ranks.constant(4)), 4), place);
  EXPECT_FALSE(ranks.divide(place, 2));
  EXPECT_EQ(ranks.asConstant(ranks.constant(7)), 7);
  EXPECT_FALSE(ranks.asConstant(place));
  EXPECT_EQ(ranks.greatest(place), 2);
}

TEST_F(RankNumbersTest, ShardsOfAGroupFollowOneAnother) {
  RankNumbers ranks(mesh());
  const Groups &tp = *ranks.groups(axes({"tp"})), &dp = *ranks.groups(axes({"dp"}));
  uint32_t start = ranks.multiply(ranks.places(tp), ranks.constant(4));
  EXPECT_TRUE(ranks.risesIn(start, tp, 4));
  EXPECT_FALSE(ranks.risesIn(start, tp, 2));
  EXPECT_TRUE(ranks.isEqualIn(start, dp));
  EXPECT_FALSE(ranks.isEqualIn(start, tp));
  EXPECT_EQ(vectorOf(ranks.values(
                ranks.fromPlaces(start, tp, 1, [](int64_t place) { return (place + 2) % 3; }))),
            (std::vector<int64_t>{8, 0, 4, 8, 0, 4}));
}

TEST_F(RankNumbersTest, MicroBatchesAreCopiesOfTheRanks) {
  RankNumbers ranks(mesh(), 2);
  EXPECT_EQ(ranks.rankCount(), 12);
  EXPECT_EQ(vectorOf(ranks.values(ranks.microBatch())),
            (std::vector<int64_t>{0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1}));
  const Groups &dp = *ranks.groups(axes({"dp"}));
  EXPECT_EQ(dp.size(), 2);
  EXPECT_TRUE(ranks.isEqualIn(ranks.microBatch(), dp));
}
