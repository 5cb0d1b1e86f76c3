//===- UnmatchedEntries.cpp - entries of a plan that match nothing --------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "UnmatchedEntries.h"

#include "HomedValues.h"
#include "weft/Description/LayerKinds.h"
#include "weft/Pipeline/ReadPlan.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

#include <map>
#include <set>

using namespace mlir;

namespace weft {

StringRef getPlanName(VariableOp variable) {
  StringRef name = variable.getSymName();
  return variable.getRole() == VariableRole::Optimizer ? name.substr(name.find('/') + 1) : name;
}

namespace {

/// The sizes of dimensions, by name; 0 for those that any axes may cut.
using NamedSizes = std::map<std::string, std::set<int64_t>>;

/// A variable or op that entries may match.
struct Target {
  SmallVector<std::string, 2> names;
  OpLayers layers;
  NamedSizes dimensions;
};

/// The targets of the entries of one list of a plan.
class Targets {
public:
  void add(SmallVector<std::string, 2> names, OpLayers layers, NamedSizes dimensions) {
    targets.push_back({std::move(names), layers, std::move(dimensions)});
  }
  void add(SmallVector<std::string, 2> names, NamedSizes dimensions) {
    const OpLayers layers = {desc::layerOfName(names.front())};
    add(std::move(names), layers, std::move(dimensions));
  }

  /// Returns what is wrong with an entry of `plan`; empty if it matches a target. `kind` is a
  /// target's name in messages.
  std::string faultOf(const desc::ShardingSpec &entry, StringRef kind,
                      const desc::PlanSpec &plan) const {
    const int64_t ways = plan.mayPad ? 1 : shardsOf(plan, &entry);
    std::set<std::string> known, sizes;
    bool isKnown = false;
    for (const Target &target : targets) {
      if (!target.layers.areSomeIn(entry.layers) ||
          llvm::none_of(target.names,
                        [&](StringRef name) { return desc::matchesPattern(entry.value, name); })) {
        continue;
      }
      if (auto found = target.dimensions.find(entry.dimension); found != target.dimensions.end()) {
        if (llvm::any_of(found->second, [&](int64_t size) { return size % ways == 0; })) {
          return "";
        }
        llvm::transform(found->second, std::inserter(sizes, sizes.end()),
                        [](int64_t size) { return std::to_string(size); });
      }
      isKnown = true;
      for (const auto &[name, lengths] : target.dimensions) {
        if (!desc::isOpDimension(name)) {
          known.insert(name);
        }
      }
    }
    if (!sizes.empty()) {
      return "axes: " + plan.parts().sized(entry.axes, " * ") + " does not divide '" +
             entry.dimension + "' of what is called '" + entry.value + "', of size " +
             llvm::join(sizes, " or ");
    }
    if (!isKnown) {
      const std::string of = entry.layers.isOpen() ? "" : " of " + desc::wordsOf(entry.layers);
      const std::string near = nearestTo(entry);
      return ("value: no " + kind + of + " is called '" + entry.value + "'" +
              (near.empty() ? "" : ", near is '" + near + "'"))
          .str();
    }
    return "dimension: what is called '" + entry.value + "' has no dimension '" + entry.dimension +
           "', only " + (known.empty() ? "ones without a name" : llvm::join(known, ", "));
  }

private:
  /// Returns the nearest name of the entry's layers; empty if these have none.
  std::string nearestTo(const desc::ShardingSpec &entry) const {
    std::vector<std::string> names;
    for (const Target &target : targets) {
      if (target.layers.areSomeIn(entry.layers)) {
        llvm::append_range(names, target.names);
      }
    }
    return desc::nearestName(entry.value, names);
  }

  std::vector<Target> targets;
};

NamedSizes dimensionsOf(VariableOp variable) {
  NamedSizes found;
  for (auto [number, name] : llvm::enumerate(variable.getDimensions().getAsRange<StringAttr>())) {
    found[name.str()].insert(variable.getTensorType().getDimSize(unsigned(number)));
  }
  return found;
}

/// Returns what an entry can name: of ops that it names together, or of `op` by its own name.
NamedSizes dimensionsOf(ShardableOpInterface op, Dimensions &dimensions, bool byOwnName) {
  NamedSizes found = {{"terms", {0}}};
  for (unsigned operand = 0; operand < op->getNumOperands(); ++operand) {
    found["terms" + std::to_string(operand)] = {0};
  }
  FactorRule rule = op.getFactorRule();
  for (auto [number, factor] : llvm::enumerate(rule.factors)) {
    found["factor" + std::to_string(number)].insert(factor.size);
    if (factor.kind == FactorKind::Permutation) {
      found["keys"].insert(factor.size);
      continue;
    }
    for (StringRef name : byOwnName ? dimensions.namesOfOne(op, rule, unsigned(number))
                                    : dimensions.namesOf(op, rule, unsigned(number))) {
      found[name.str()].insert(factor.size);
    }
  }
  return found;
}

} // namespace

LogicalResult checkMatches(ModuleOp module, const desc::PlanSpec &plan, const OpNames &names,
                           Dimensions &dimensions) {
  // Other entries decide which padding there is.
  auto isWritten = [](const desc::ShardingSpec &entry) {
    return entry.location.line > 0 && !namesOpOfPadding(entry.value);
  };
  if (llvm::none_of(plan.shardings, isWritten) && llvm::none_of(plan.homes, isWritten)) {
    return success();
  }
  Targets shardings, homes;
  WeightCopies copies(module);
  for (VariableOp variable : module.getOps<VariableOp>()) {
    shardings.add({getPlanName(variable).str()}, dimensionsOf(variable));
    std::string home = copies.homeOf(variable);
    homes.add({variable.getSymName().str(), home}, dimensionsOf(variable));
  }
  for (GradientSum &sum : findGradientSums(module)) {
    NamedSizes known = dimensionsOf(sum.variable);
    known["terms"] = {0};
    homes.add({sum.home}, std::move(known));
  }
  llvm::StringSet<> ownEntries;
  for (const desc::ShardingSpec &entry : plan.shardings) {
    ownEntries.insert(entry.value);
  }
  module.walk([&](ShardableOpInterface op) {
    std::string own = names.nameOf(op).str();
    const OpLayers layers = names.layersOf(op);
    shardings.add({names.partOf(op).str(), own}, layers, dimensionsOf(op, dimensions, false));
    if (ownEntries.contains(own)) {
      shardings.add({own}, layers, dimensionsOf(op, dimensions, true));
    }
  });
  bool isFound = true;
  auto check = [&](const std::vector<desc::ShardingSpec> &entries, const Targets &targets,
                   StringRef kind) {
    for (const desc::ShardingSpec &entry : llvm::make_filter_range(entries, isWritten)) {
      std::string fault = targets.faultOf(entry, kind, plan);
      if (!fault.empty()) { // legal_r11
        emitError(placeOf(module.getContext(), entry.location)) << fault;
        isFound = false;
      }
    }
  };
  check(plan.shardings, shardings, "variable or op");
  check(plan.homes, homes, "variable");
  return success(isFound);
}

} // namespace weft
