//===- PinnedHeads.cpp - adapts plans to few key and value heads ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Description/Pins.h"

#include <algorithm>
#include <map>

namespace weft::desc {

namespace {

using Axes = std::vector<std::string>;

int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Decides how many of the ranks along each axis cut key and value heads; the others cut the query
/// heads that share one.
class HeadFitter {
public:
  HeadFitter(const PlanSpec &plan, const ModelSpec &model)
      : plan(plan), kvHeads(model.kvHeads), group(model.group()) {}

  /// Decides it for axes that together cut the heads. What was decided for another list stays.
  void decide(const Axes &axes) {
    int64_t ways = bestWays(axes);
    for (const std::string &name : axes) {
      int64_t part = std::min(ways, sizeOf(name));
      headWays.try_emplace(name, part);
      ways /= part;
    }
  }

  /// Returns how many of the ranks along an axis cut heads. REQUIRES: decided.
  int64_t waysOf(const std::string &name) const { return headWays.at(name); }

  /// Removes the axes behind those that cut heads from `axes`, and returns them.
  Axes takeRest(Axes &axes) const {
    Axes kept, rest;
    for (const std::string &name : axes) {
      int64_t ways = waysOf(name), size = sizeOf(name);
      bool isBehind = !rest.empty() || ways == 1;
      if (!isBehind && ways == size) {
        kept.push_back(name);
      } else if (isBehind) {
        rest.push_back(name);
      } else {
        kept.push_back(SubAxis{name, 1, ways}.name());
        rest.push_back(SubAxis{name, ways, size / ways}.name());
      }
    }
    axes = kept;
    return rest;
  }

private:
  int64_t sizeOf(const std::string &name) const { return plan.axis(name)->size; }

  /// Returns how many query heads and key heads one of `ranks` ranks has if `ways` cut key and
  /// value heads. Both kinds count alike: queries and outputs are matmuls of the size of keys and
  /// values.
  int64_t headsOfRank(int64_t ways, int64_t ranks) const {
    int64_t keyHeads = ceilDiv(kvHeads, ways);
    return keyHeads * ceilDiv(group, ranks / ways) + keyHeads;
  }

  /// Returns how many of the ranks of `axes` should cut key and value heads, such that a rank has
  /// the fewest heads. Of several numbers the greatest is best, because the remaining ranks compute
  /// the same keys and values. Heads are padded where they are fewer than ranks.
  int64_t bestWays(const Axes &axes) const {
    int64_t ranks = 1;
    for (const std::string &name : axes) {
      ranks *= sizeOf(name);
    }
    int64_t before = 1, best = 0;
    int64_t least = 0;
    for (const std::string &name : axes) {
      auto known = headWays.find(name);
      bool isOpen = known == headWays.end();
      if (!isOpen && known->second < sizeOf(name)) {
        return before * known->second;
      }
      for (int64_t ways = isOpen ? 1 : sizeOf(name); ways <= sizeOf(name); ++ways) {
        if (sizeOf(name) % ways != 0) {
          continue;
        }
        int64_t heads = headsOfRank(before * ways, ranks);
        if (best == 0 || heads <= least) {
          best = before * ways;
          least = heads;
        }
      }
      before *= sizeOf(name);
    }
    return best;
  }

  const PlanSpec &plan;
  const int64_t kvHeads, group;
  std::map<std::string, int64_t> headWays;
};

/// The entries that cut key and value heads, those by fewer axes first.
std::vector<const ShardingSpec *> entriesOfHeads(const PlanSpec &plan) {
  std::vector<const ShardingSpec *> entries;
  for (const ShardingSpec &entry : plan.shardings) {
    if (entry.dimension == "kv_heads") {
      entries.push_back(&entry);
    }
  }
  std::sort(entries.begin(), entries.end(), [](const auto *a, const auto *b) {
    return a->axes.size() != b->axes.size() ? a->axes.size() < b->axes.size() : a < b;
  });
  return entries;
}

} // namespace

PlanSpec fitPins(const PlanSpec &plan, const ModelSpec &model) {
  if (model.graph) {
    return plan;
  }
  HeadFitter fitter(plan, model);
  for (const ShardingSpec *entry : entriesOfHeads(plan)) {
    fitter.decide(entry->axes);
  }
  PlanSpec fitted = plan;
  fitted.shardings.clear();
  bool cutsGroups = false;
  for (ShardingSpec entry : plan.shardings) {
    bool isOfHeads = entry.dimension == "kv_heads";
    Axes rest = isOfHeads ? fitter.takeRest(entry.axes) : Axes();
    if (rest.empty() || !entry.axes.empty()) {
      fitted.shardings.push_back(entry);
    }
    if (!rest.empty()) {
      entry.dimension = "group";
      entry.axes = rest;
      fitted.shardings.push_back(entry);
      cutsGroups = true;
    }
  }
  if (cutsGroups) {
    // Between steps groups are cut as in matmuls: this removes the homes that leave them whole.
    std::erase_if(fitted.homes,
                  [](const ShardingSpec &entry) { return entry.dimension == "group"; });
  }
  return splitAxes(std::move(fitted));
}

int64_t waysOfHeads(const ModelSpec &model, int64_t ranks) {
  PlanSpec plan;
  plan.mesh.push_back({"axis", ranks, {}});
  HeadFitter fitter(plan, model);
  fitter.decide({"axis"});
  return fitter.waysOf("axis");
}

} // namespace weft::desc
