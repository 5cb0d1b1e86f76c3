//===- RouteTest.cpp - the messages of each collective --------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/processes/Route.h"

#include "support/CheckedMath.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

using namespace weft::rt;
using namespace weft::rt::mpi;
using testing::ElementsAre;

namespace {

Collective collectiveOf(CollectiveKind kind, std::vector<int64_t> shape, uint32_t dim = 0,
                        uint32_t dim2 = 0) {
  return {kind, ReductionKind::Sum, ElementType::I32, {0}, std::move(shape), dim, dim2};
}

/// Returns the bytes that `me` sends to others.
int64_t sentBytes(const Collective &collective, int64_t members, int64_t me) {
  int64_t elements = 0;
  for (const Exchange &exchange : routeOf(collective, members, me)) {
    for (int64_t member = 0; member < members; ++member) {
      elements += member == me ? 0 : exchange.sends[size_t(member)].count;
    }
  }
  return elements * int64_t(sizeOf(collective.type));
}

TEST(StripTest, PacksPartsOfAPartWithGaps) {
  // Rows 0 and 1, columns 0 and 1, of a buffer of three columns.
  Strip strip({2, 2}, {3, 1}, sizeof(int32_t));
  EXPECT_FALSE(strip.isDense());
  std::vector<int32_t> buffer = {1, 2, 3, 4, 5, 6}, packed(4), back(6, 0);
  strip.pack(reinterpret_cast<char *>(buffer.data()), 0, 4,
             reinterpret_cast<char *>(packed.data()));
  EXPECT_THAT(packed, ElementsAre(1, 2, 4, 5));
  std::vector<int32_t> part(2);
  strip.pack(reinterpret_cast<char *>(buffer.data()), 1, 2, reinterpret_cast<char *>(part.data()));
  EXPECT_THAT(part, ElementsAre(2, 4));
  strip.unpack(reinterpret_cast<char *>(part.data()), 1, 2, reinterpret_cast<char *>(back.data()));
  EXPECT_THAT(back, ElementsAre(0, 2, 0, 4, 0, 0));
}

TEST(StripTest, DimensionsWithoutAGapAreOne) {
  EXPECT_TRUE(Strip({2, 3, 4}, {12, 4, 1}, 4).isDense());
  EXPECT_TRUE(Strip({1, 5}, {100, 1}, 4).isDense());
  EXPECT_FALSE(Strip({2, 3, 4}, {24, 4, 1}, 4).isDense());
}

/// The formulas of Route.h for the bytes that a member sends.
TEST(RouteTest, SendsAsManyBytesAsItsKindNeeds) {
  const int64_t members = 4, large = 1 << 20, small = 16;
  for (int64_t me = 0; me < members; ++me) {
    EXPECT_EQ(sentBytes(collectiveOf(CollectiveKind::AllReduce, {large}), members, me),
              2 * 4 * large * (members - 1) / members);
    EXPECT_EQ(sentBytes(collectiveOf(CollectiveKind::AllReduce, {small}), members, me),
              4 * small * (members - 1));
    EXPECT_EQ(sentBytes(collectiveOf(CollectiveKind::ReduceScatter, {large}), members, me),
              4 * large * (members - 1) / members);
    EXPECT_EQ(sentBytes(collectiveOf(CollectiveKind::AllToAll, {8, large}, 1, 0), members, me),
              4 * 8 * large * (members - 1) / members);
    EXPECT_EQ(sentBytes(collectiveOf(CollectiveKind::AllGather, {large}), members, me),
              4 * large * (members - 1));
    Collective permute = collectiveOf(CollectiveKind::Permute, {large});
    permute.sources = {1, 2, 3, 0};
    EXPECT_EQ(sentBytes(permute, members, me), 4 * large);
  }
  Collective transfer = collectiveOf(CollectiveKind::Transfer, {large});
  EXPECT_EQ(sentBytes(transfer, 2, 0), 4 * large);
  EXPECT_EQ(sentBytes(transfer, 2, 1), 0);
}

/// The parts that one member sends are those that the other expects.
TEST(RouteTest, MembersAgreeOnEveryPart) {
  Collective permute = collectiveOf(CollectiveKind::Permute, {6, 9});
  permute.sources = {2, 2, 1};
  for (const Collective &collective : {collectiveOf(CollectiveKind::AllReduce, {100000}),
                                       collectiveOf(CollectiveKind::AllReduce, {5}),
                                       collectiveOf(CollectiveKind::ReduceScatter, {6, 9}, 1),
                                       collectiveOf(CollectiveKind::AllGather, {6, 9}, 1),
                                       collectiveOf(CollectiveKind::AllToAll, {6, 9}, 1, 0),
                                       permute, collectiveOf(CollectiveKind::Transfer, {6, 9})}) {
    const int64_t members = collective.kind == CollectiveKind::Transfer ? 2 : 3;
    std::vector<std::vector<Exchange>> routes;
    for (int64_t me = 0; me < members; ++me) {
      routes.push_back(routeOf(collective, members, me));
    }
    for (int64_t from = 0; from < members; ++from) {
      for (int64_t to = 0; to < members; ++to) {
        ASSERT_EQ(routes[size_t(from)].size(), routes[size_t(to)].size());
        for (size_t i = 0; i < routes[size_t(from)].size(); ++i) {
          EXPECT_EQ(routes[size_t(from)][i].sends[size_t(to)].count,
                    routes[size_t(to)][i].comes[size_t(from)].count);
        }
      }
    }
  }
}

/// Slices of an all-reduce whose length the members do not divide: all elements, each once.
TEST(RouteTest, SlicesCoverAnUnevenLength) {
  const int64_t members = 7, count = 100003;
  std::vector<int> times(count, 0);
  std::vector<Exchange> route =
      routeOf(collectiveOf(CollectiveKind::AllReduce, {count}), members, 0);
  ASSERT_EQ(route.size(), 2u);
  EXPECT_TRUE(route[0].reduces);
  EXPECT_TRUE(route[1].sendsResult);
  for (const Exchange::Part &part : route[0].sends) {
    EXPECT_EQ(part.offset % 64, 0);
    for (int64_t i = 0; i < part.count; ++i) {
      ++times[size_t(part.offset / 4 + i)];
    }
  }
  EXPECT_EQ(times, std::vector<int>(count, 1));
}

} // namespace
