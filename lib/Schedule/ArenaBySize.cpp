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

/// Bytes that a buffer holds for some time.
struct Place {
  uint64_t begin, end;
  int64_t first, last;
};

/// One walk through an order.
ArenaPlan packInOrder(const ArenaProblem &problem, const std::vector<uint32_t> &order) {
  ArenaPlan plan;
  plan.offsets.assign(problem.buffers.size(), 0);
  std::vector<Place> places; // By their first byte.
  places.reserve(order.size());
  for (uint32_t number : order) {
    const ArenaBuffer &buffer = problem.buffers[number];
    uint64_t bytes = (buffer.bytes + problem.alignment - 1) / problem.alignment * problem.alignment;
    uint64_t lowest = 0;
    for (const Place &place : places) {
      if (place.first > buffer.last || place.last < buffer.first) {
        continue;
      }
      if (place.begin >= lowest + bytes) {
        break;
      }
      lowest = std::max(lowest, place.end);
    }
    Place place = {lowest, lowest + bytes, buffer.first, buffer.last};
    places.insert(
        std::upper_bound(places.begin(), places.end(), place,
                         [](const Place &a, const Place &b) { return a.begin < b.begin; }),
        place);
    plan.offsets[number] = lowest;
    plan.bytes = std::max(plan.bytes, lowest + bytes);
  }
  return plan;
}

} // namespace

ArenaPlan weft::schedule::packBySize(const ArenaProblem &problem, uint64_t target,
                                     int64_t repairs) {
  const std::vector<ArenaBuffer> &buffers = problem.buffers;
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i].isNeeded()) {
      order.push_back(i);
    }
  }
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return buffers[a].bytes != buffers[b].bytes ? buffers[a].bytes > buffers[b].bytes : a < b;
  });
  ArenaPlan plan = packInOrder(problem, order), best = plan;
  for (; repairs > 0 && best.bytes > target; --repairs) {
    auto endsTooHigh = [&](uint32_t number) {
      return plan.offsets[number] + buffers[number].bytes > target;
    };
    std::vector<uint32_t> next;
    std::copy_if(order.begin(), order.end(), std::back_inserter(next), endsTooHigh);
    std::copy_if(order.begin(), order.end(), std::back_inserter(next), std::not_fn(endsTooHigh));
    order = std::move(next);
    plan = packInOrder(problem, order);
    if (plan.bytes < best.bytes) {
      best = plan;
    }
  }
  return best;
}
