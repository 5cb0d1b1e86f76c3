//===- SplitForSearch.cpp - sub-axes that the search may use --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Description/SplitForSearch.h"

#include "weft/Description/Pins.h"

#include <algorithm>

namespace weft::desc {

namespace {

constexpr size_t kMostParts = 3;

/// The smallest axis that is split into two parts for their own sake.
constexpr int64_t kLargeAxis = 12;

class SearchSplitter {
public:
  SearchSplitter(const PlanSpec &plan, const ModelSpec &model, const MachineSpec &machine)
      : axes(plan.parts().axes()), model(model), machine(machine) {}

  std::vector<SubAxis> run() {
    splitAtNodes();
    if (!model.graph) {
      splitForHeads();
    }
    splitLargest();
    std::vector<SubAxis> subAxes;
    for (const SplitAxis &axis : axes) {
      std::vector<SubAxis> parts = axis.subAxes();
      subAxes.insert(subAxes.end(), parts.begin(), parts.end());
    }
    return subAxes;
  }

private:
  size_t partCount() const {
    size_t count = 0;
    for (const SplitAxis &axis : axes) {
      count += axis.parts.size();
    }
    return count;
  }

  /// Splits a part into `major` and the rest, unless that is no split or one too many.
  void split(SplitAxis &axis, size_t part, int64_t major) {
    int64_t size = axis.parts[part];
    if (partCount() < kMostParts && major > 1 && major < size && size % major == 0) {
      axis.parts[part] = major;
      axis.parts.insert(axis.parts.begin() + std::ptrdiff_t(part) + 1, size / major);
    }
  }

  /// The last axes of the mesh are within nodes.
  void splitAtNodes() {
    int64_t minor = 1;
    for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
      int64_t size = axis->size();
      if (machine.devicesPerNode % minor == 0) {
        int64_t onNode = machine.devicesPerNode / minor;
        split(*axis, 0, size % onNode == 0 ? size / onNode : 1);
      }
      minor *= size;
    }
  }

  void splitForHeads() {
    for (SplitAxis &axis : axes) {
      for (size_t part = 0; part < axis.parts.size(); ++part) {
        if (axis.parts[part] <= machine.devicesPerNode) {
          split(axis, part, waysOfHeads(model, axis.parts[part]));
        }
      }
    }
  }

  void splitLargest() {
    while (partCount() < kMostParts) {
      SplitAxis *widest = nullptr;
      size_t at = 0;
      for (SplitAxis &axis : axes) {
        for (size_t part = 0; part < axis.parts.size(); ++part) {
          if (!widest || axis.parts[part] > widest->parts[at]) {
            widest = &axis;
            at = part;
          }
        }
      }
      if (!widest || widest->parts[at] < kLargeAxis) {
        return;
      }
      size_t before = partCount();
      split(*widest, at, middleDivisor(widest->parts[at]));
      if (partCount() == before) {
        return; // A prime.
      }
    }
  }

  /// Returns the largest divisor of `size` whose square is at most `size`.
  static int64_t middleDivisor(int64_t size) {
    int64_t best = 1;
    for (int64_t divisor = 2; divisor * divisor <= size; ++divisor) {
      best = size % divisor == 0 ? divisor : best;
    }
    return best;
  }

  std::vector<SplitAxis> axes;
  const ModelSpec &model;
  const MachineSpec &machine;
};

} // namespace

PlanSpec splitForSearch(const PlanSpec &plan, const ModelSpec &model, const MachineSpec &machine) {
  bool isSplit = std::any_of(plan.mesh.begin(), plan.mesh.end(),
                             [](const AxisSpec &axis) { return parseSubAxis(axis.name); });
  return isSplit ? plan : splitAxes(plan, SearchSplitter(plan, model, machine).run());
}

} // namespace weft::desc
