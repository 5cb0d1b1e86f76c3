//===- RankGroup.cpp - ranks that communicate ---------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft-rt/RankGroup.h"

#include <algorithm>
#include <numeric>

using namespace weft::rt;

size_t weft::rt::indexOf(int64_t rank, std::span<const int64_t> ranks) {
  return size_t(std::find(ranks.begin(), ranks.end(), rank) - ranks.begin());
}

RankGroup weft::rt::allRanks(int64_t count) {
  RankGroup group = {std::vector<int64_t>(size_t(count)), kAllRanks};
  std::iota(group.ranks.begin(), group.ranks.end(), 0);
  return group;
}

RankGroup weft::rt::pairOf(int64_t sender, int64_t receiver) {
  return {{sender, receiver}, kPairs};
}

RankGroup weft::rt::groupOver(std::span<const uint32_t> axes, int64_t rank,
                              std::span<const Axis> mesh) {
  // strides[a]: the distance between two ranks whose coordinates on axis a differ by one.
  std::vector<int64_t> strides(mesh.size());
  int64_t stride = 1;
  for (size_t axis = mesh.size(); axis-- > 0;) {
    strides[axis] = stride;
    stride *= mesh[axis].size;
  }
  RankGroup group;
  int64_t first = rank;
  for (uint32_t axis : axes) {
    first -= rank / strides[axis] % mesh[axis].size * strides[axis];
    group.number |= uint32_t(mesh[axis].size > 1) << axis;
  }
  group.ranks = {first};
  for (uint32_t axis : axes) {
    std::vector<int64_t> larger;
    for (int64_t base : group.ranks) {
      for (int64_t coordinate = 0; coordinate < mesh[axis].size; ++coordinate) {
        larger.push_back(base + coordinate * strides[axis]);
      }
    }
    group.ranks = std::move(larger);
  }
  return group;
}
