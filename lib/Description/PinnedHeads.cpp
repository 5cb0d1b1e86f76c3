//===- PinnedHeads.cpp - adapts pins to few key and value heads -----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Description/Pins.h"

#include <algorithm>

namespace weft::desc {

namespace {

constexpr const char *axisName = "tp", *groupAxisName = "tp_group";

int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Returns the part of `ways` that cuts key and value heads, such that a rank has the fewest query
/// heads. Of several it is the greatest, because the remaining ranks compute the same keys and
/// values.
int64_t waysOfHeads(int64_t kvHeads, int64_t group, int64_t ways) {
  int64_t best = ways, fewest = ceilDiv(kvHeads, ways) * group;
  for (int64_t some = ways - 1; some >= 1; --some) {
    int64_t heads = ceilDiv(kvHeads, some) * ceilDiv(group, ways / some);
    if (ways % some == 0 && heads < fewest) {
      best = some;
      fewest = heads;
    }
  }
  return best;
}

/// Replaces the axis by its two parts.
void splitAxis(PlanSpec &plan, int64_t ways) {
  auto axis = std::find_if(plan.mesh.begin(), plan.mesh.end(),
                           [](const AxisSpec &one) { return one.name == axisName; });
  AxisSpec minor = {groupAxisName, axis->size / ways, axis->location};
  axis->size = ways;
  plan.mesh.insert(axis + 1, minor);
  for (auto *entries : {&plan.shardings, &plan.homes}) {
    for (ShardingSpec &entry : *entries) {
      auto found = std::find(entry.axes.begin(), entry.axes.end(), axisName);
      if (found != entry.axes.end()) {
        entry.axes.insert(found + 1, groupAxisName);
      }
    }
  }
}

/// In entries that cut heads, moves the axes from `last` on to `group`.
void giveToGroups(std::vector<ShardingSpec> &entries, const std::string &last) {
  for (size_t i = 0; i < entries.size(); ++i) {
    std::vector<std::string> &axes = entries[i].axes;
    auto found = std::find(axes.begin(), axes.end(), last);
    if (entries[i].dimension == "kv_heads" && found != axes.end()) {
      ShardingSpec ofGroup = entries[i];
      ofGroup.dimension = "group";
      ofGroup.axes.assign(found, axes.end());
      axes.erase(found, axes.end());
      entries.insert(entries.begin() + std::ptrdiff_t(i) + 1, ofGroup);
      ++i;
    }
  }
  std::erase_if(entries, [](const ShardingSpec &entry) {
    return entry.dimension == "kv_heads" && entry.axes.empty();
  });
}

} // namespace

PlanSpec fitPins(PlanSpec plan, const ModelSpec &model) {
  const AxisSpec *axis = plan.axis(axisName);
  if (model.graph || !axis || model.kvHeads % axis->size == 0 || model.group() == 1) {
    return plan;
  }
  int64_t ways = waysOfHeads(model.kvHeads, model.group(), axis->size);
  if (ways == axis->size) {
    return plan;
  }
  if (ways > 1) {
    splitAxis(plan, ways);
  }
  giveToGroups(plan.shardings, ways > 1 ? groupAxisName : axisName);
  // Between steps groups are cut as in matmuls: this removes the homes that leave them whole.
  std::erase_if(plan.homes, [](const ShardingSpec &entry) { return entry.dimension == "group"; });
  return plan;
}

} // namespace weft::desc
