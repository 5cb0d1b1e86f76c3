//===- ArenaBySize.cpp - packing the largest buffers first ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Schedule/Arena.h"

#include <algorithm>
#include <functional>
#include <iterator>

using namespace weft::schedule;

namespace {

/// The first and last instant of a buffer, as numbers among those of all buffers: small, because
/// each buffer is compared with all that are placed.
struct Life {
  int32_t first, last;
};

std::vector<Life> numberInstants(const std::vector<ArenaBuffer> &buffers) {
  std::vector<int64_t> instants;
  for (const ArenaBuffer &buffer : buffers) {
    instants.insert(instants.end(), {buffer.first, buffer.last});
  }
  std::ranges::sort(instants);
  const auto repeated = std::ranges::unique(instants);
  instants.erase(repeated.begin(), repeated.end());
  auto numberOf = [&](int64_t instant) {
    return int32_t(std::ranges::lower_bound(instants, instant) - instants.begin());
  };
  std::vector<Life> lives;
  for (const ArenaBuffer &buffer : buffers) {
    lives.push_back({numberOf(buffer.first), numberOf(buffer.last)});
  }
  return lives;
}

/// The bytes of a buffer that is placed.
struct Place {
  uint64_t begin, end;
};

/// One walk through an order.
ArenaPlan packInOrder(const ArenaProblem &problem, const std::vector<Life> &lives,
                      const std::vector<uint32_t> &order) {
  ArenaPlan plan;
  plan.offsets.assign(problem.buffers.size(), 0);
  // Of the buffers that are placed, by their first byte.
  std::vector<Life> placed;
  std::vector<Place> places;
  placed.reserve(order.size());
  places.reserve(order.size());
  for (uint32_t number : order) {
    const auto [first, last] = lives[number];
    const uint64_t bytes = (problem.buffers[number].bytes + problem.alignment - 1) /
                           problem.alignment * problem.alignment;
    uint64_t lowest = 0;
    for (size_t i = 0; i < placed.size(); ++i) {
      if (placed[i].first > last || placed[i].last < first) {
        continue;
      }
      if (places[i].begin >= lowest + bytes) {
        break;
      }
      lowest = std::max(lowest, places[i].end);
    }
    const auto at = std::ranges::upper_bound(places, lowest, {}, &Place::begin) - places.begin();
    places.insert(places.begin() + at, {lowest, lowest + bytes});
    placed.insert(placed.begin() + at, lives[number]);
    plan.offsets[number] = lowest;
    plan.bytes = std::max(plan.bytes, lowest + bytes);
  }
  return plan;
}

} // namespace

ArenaPlan weft::schedule::packBySize(const ArenaProblem &problem, uint64_t target,
                                     int64_t repairs) {
  const std::vector<ArenaBuffer> &buffers = problem.buffers;
  const std::vector<Life> lives = numberInstants(buffers);
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i].isNeeded()) {
      order.push_back(i);
    }
  }
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return buffers[a].bytes != buffers[b].bytes ? buffers[a].bytes > buffers[b].bytes : a < b;
  });
  ArenaPlan plan = packInOrder(problem, lives, order), best = plan;
  for (; repairs > 0 && best.bytes > target; --repairs) {
    auto endsTooHigh = [&](uint32_t number) {
      return plan.offsets[number] + buffers[number].bytes > target;
    };
    std::vector<uint32_t> next;
    std::copy_if(order.begin(), order.end(), std::back_inserter(next), endsTooHigh);
    std::copy_if(order.begin(), order.end(), std::back_inserter(next), std::not_fn(endsTooHigh));
    order = std::move(next);
    plan = packInOrder(problem, lives, order);
    if (plan.bytes < best.bytes) {
      best = plan;
    }
  }
  return best;
}
