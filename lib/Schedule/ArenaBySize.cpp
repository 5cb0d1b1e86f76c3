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

/// When a buffer that is placed is needed, and its bytes.
struct Placed {
  Life life;
  uint64_t begin, end;
};

/// The buffers that are placed. Time is cut into parts: most buffers are needed in one part alone,
/// and are compared with those of that part.
class PlacedBuffers {
public:
  /// REQUIRES: no buffer is needed after the last instant.
  explicit PlacedBuffers(int32_t lastInstant)
      : partLength(lastInstant / kParts + 1), parts(kParts) {}

  /// Returns the lowest place that is free all the time.
  uint64_t findLowest(const Life &life, uint64_t bytes) const {
    const size_t first = partOf(life.first), count = partOf(life.last) - first + 1;
    uint64_t lowest = 0;
    size_t free = 0; // Parts in a row that have the place free.
    for (size_t i = 0; free < count; i = (i + 1) % count) {
      const uint64_t next = findLowest(parts[first + i], life, lowest, bytes);
      free = next == lowest ? free + 1 : 1;
      lowest = next;
    }
    return lowest;
  }

  void add(const Placed &buffer) {
    for (size_t part = partOf(buffer.life.first); part <= partOf(buffer.life.last); ++part) {
      parts[part].insert(std::ranges::upper_bound(parts[part], buffer.begin, {}, &Placed::begin),
                         buffer);
    }
  }

private:
  static constexpr int32_t kParts = 12;

  size_t partOf(int32_t instant) const { return size_t(instant / partLength); }

  /// The same from `lowest` on, where no other buffers are placed.
  static uint64_t findLowest(const std::vector<Placed> &among, const Life &life, uint64_t lowest,
                             uint64_t bytes) {
    for (const Placed &other : among) {
      if (other.life.first > life.last || other.life.last < life.first) {
        continue;
      }
      if (other.begin >= lowest + bytes) {
        break;
      }
      lowest = std::max(lowest, other.end);
    }
    return lowest;
  }

  const int32_t partLength;
  /// Those that are needed in each part of time, by their first byte.
  std::vector<std::vector<Placed>> parts;
};

/// One walk through an order.
ArenaPlan packInOrder(const ArenaProblem &problem, const std::vector<Life> &lives,
                      const std::vector<uint32_t> &order) {
  ArenaPlan plan;
  plan.offsets.assign(problem.buffers.size(), 0);
  int32_t lastInstant = 0;
  for (uint32_t number : order) {
    lastInstant = std::max(lastInstant, lives[number].last);
  }
  PlacedBuffers placed(lastInstant);
  for (uint32_t number : order) {
    const uint64_t bytes = (problem.buffers[number].bytes + problem.alignment - 1) /
                           problem.alignment * problem.alignment;
    const uint64_t lowest = placed.findLowest(lives[number], bytes);
    placed.add({lives[number], lowest, lowest + bytes});
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
