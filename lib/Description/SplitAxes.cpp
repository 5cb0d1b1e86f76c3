//===- SplitAxes.cpp - splits axes where sub-axes begin and end -----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AxisBorders.h"

#include "weft/Description/Plan.h"

#include <algorithm>
#include <cassert>
#include <map>

namespace weft::desc {

namespace {

/// Returns the axes of `plan` with borders at all sub-axes.
std::vector<SplitAxis> splitAt(const PlanSpec &plan, const std::vector<SubAxis> &subAxes) {
  std::vector<SplitAxis> axes = plan.parts().axes();
  for (SplitAxis &axis : axes) {
    detail::AxisBorders borders(axis.size());
    for (const SubAxis &part : axis.subAxes()) {
      (void)borders.add(part.before, part.size);
    }
    for (const SubAxis &one : subAxes) {
      [[maybe_unused]] std::string problem =
          one.axis == axis.name ? borders.add(one.before, one.size) : "";
      assert(problem.empty() && "sub-axes must be legal");
    }
    axis.parts = borders.parts();
  }
  return axes;
}

/// Replaces each axis that an entry names by the axes that `change` returns for it.
template <typename Change> void changeAxes(PlanSpec &plan, Change change) {
  for (auto *entries : {&plan.shardings, &plan.homes}) {
    for (ShardingSpec &entry : *entries) {
      std::vector<std::string> axes;
      for (const std::string &name : entry.axes) {
        std::vector<std::string> changed = change(name);
        axes.insert(axes.end(), changed.begin(), changed.end());
      }
      entry.axes = std::move(axes);
    }
  }
}

} // namespace

PlanSpec splitAxes(PlanSpec plan, const std::vector<SubAxis> &subAxes) {
  std::vector<SubAxis> all = subAxes;
  changeAxes(plan, [&](const std::string &name) {
    if (std::optional<SubAxis> one = parseSubAxis(name)) {
      all.push_back(*one);
    }
    return std::vector<std::string>{name};
  });
  const MeshParts parts(splitAt(plan, all));
  std::vector<AxisSpec> mesh;
  for (const SplitAxis &axis : parts.axes()) {
    auto written = std::find_if(plan.mesh.begin(), plan.mesh.end(), [&](const AxisSpec &one) {
      return one.name == axis.name || one.name.starts_with(axis.name + ":");
    });
    std::vector<std::string> names = axis.partNames();
    for (size_t i = 0; i < names.size(); ++i) {
      mesh.push_back({names[i], axis.parts[i], written->location});
    }
  }
  plan.mesh = std::move(mesh);
  changeAxes(plan, [&](const std::string &name) {
    return parts.partsOf(name).value_or(std::vector<std::string>{name});
  });
  return plan;
}

PlanSpec renameParts(PlanSpec plan) {
  std::vector<std::string> names = plan.parts().partNames();
  std::map<std::string, std::string> renamed;
  for (size_t i = 0; i < names.size(); ++i) {
    renamed[plan.mesh[i].name] = names[i];
    plan.mesh[i].name = names[i];
  }
  changeAxes(plan, [&](const std::string &name) {
    auto found = renamed.find(name);
    return std::vector<std::string>{found == renamed.end() ? name : found->second};
  });
  return plan;
}

} // namespace weft::desc
