//===- HomeEntries.cpp - the entries of a plan that cut homes -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HomeEntries.h"

#include "LayoutSpaces.h"
#include "UnmatchedEntries.h"

#include <map>

using namespace mlir;

namespace weft {

HomeNames::HomeNames(ModuleOp module) : copies(module) {
  for (const GradientSum &sum : findGradientSums(module)) {
    sums[sum.variable].push_back(sum.home);
  }
}

SmallVector<std::string> HomeNames::allOf(VariableOp variable) const {
  SmallVector<std::string> names = {of(variable)};
  std::string name = variable.getSymName().str();
  if (!copies.of(variable).empty()) {
    names.push_back(name);
  }
  llvm::append_range(names, sums.lookup(variable));
  return names;
}

static std::optional<AxisClash> findClash(ArrayRef<HomeEntry> dims) {
  std::map<std::string, size_t> cut;
  for (auto [dim, home] : llvm::enumerate(dims)) {
    for (const std::string &axis : home.entry ? home.entry->axes : std::vector<std::string>()) {
      auto [known, isNew] = cut.try_emplace(axis, dim);
      if (!isNew && known->second != dim) {
        return AxisClash{axis, known->second, dim};
      }
    }
  }
  return std::nullopt;
}

HomeEntries entriesOfHome(VariableOp variable, const std::string &name,
                          const desc::PlanSpec &plan) {
  HomeEntries found;
  std::string planName = getPlanName(variable).str();
  for (auto [dim, dimension] : llvm::enumerate(variable.getDimensions().getAsRange<StringAttr>())) {
    HomeEntry home{desc::entryFor(plan.homes, name, dimension.str()), true};
    // Entries for ops apply to inputs only as far as inputs can follow.
    if (!home.entry && mayBeCut(variable, int64_t(dim))) {
      home = {desc::entryFor(plan.shardings, planName, dimension.str()), false};
    }
    found.dims.push_back(home);
  }
  while (std::optional<AxisClash> clash = findClash(found.dims)) {
    HomeEntry &first = found.dims[clash->first], &second = found.dims[clash->second];
    if (first.entry->priority == second.entry->priority) {
      found.clash = clash;
      break;
    }
    bool isFirstWeaker = first.entry->priority > second.entry->priority;
    HomeEntry &weaker = isFirstWeaker ? first : second;
    found.overruled.push_back({weaker.entry, isFirstWeaker ? second.entry : first.entry});
    weaker = {};
  }
  return found;
}

} // namespace weft
