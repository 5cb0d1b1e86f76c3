//===- WritePlan.cpp - the plan that a module follows ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Pipeline/Plan/WritePlan.h"

#include "HomedValues.h"
#include "LayoutSpaces.h"
#include "OpPins.h"
#include "Padding.h"
#include "Summary.h"

#include "weft/Description/LayerKinds.h"
#include "weft/Dialect/Weft/IR/AttributeNames.h"
#include "weft/Dialect/Weft/IR/Sharding.h"
#include "weft/Pipeline/Plan/Passes.h"

#include <set>
#include <tuple>

using namespace mlir;
using namespace weft;

namespace {

using Axes = std::vector<std::string>;

Axes toNames(ArrayAttr axes) {
  Axes names;
  for (StringAttr axis : axes.getAsRange<StringAttr>()) {
    names.push_back(axis.str());
  }
  return names;
}

/// What a home shards: the variable that it has the dimensions of, and its type.
struct Home {
  std::string name;
  VariableOp variable;
  RankedTensorType type;
};

SmallVector<Home> findHomes(ModuleOp module) {
  SmallVector<Home> homes;
  WeightCopies copies(module);
  for (auto variable : module.getOps<VariableOp>()) {
    homes.push_back({copies.homeOf(variable), variable, variable.getTensorType()});
    for (Value copy : copies.of(variable)) {
      // The copies of all functions have one layout, that of the step.
      if (Value held = WeightCopies::heldIn(copy)) {
        homes.push_back(
            {variable.getSymName().str(), variable, cast<RankedTensorType>(held.getType())});
        break;
      }
    }
  }
  for (GradientSum &sum : findGradientSums(module)) {
    auto type = sum.function.getArgument(sum.argument).getType();
    homes.push_back({sum.home, sum.variable, cast<RankedTensorType>(type)});
  }
  return homes;
}

/// The axes of each factor of an op, and the axes over which each set of operands is pending;
/// `pinsOf` names these sets.
struct OpSharding {
  SmallVector<ArrayAttr> factors;
  std::map<std::string, ArrayAttr> terms;
  bool mayHaveTerms = false;
};

/// Returns true if the shards of an entry, whatever its value, do not divide a dimension of its
/// name.
bool areUneven(ModuleOp module, const desc::PlanSpec &plan) {
  auto isUneven = [&](StringRef name, int64_t size) {
    return llvm::any_of(plan.shardings, [&](const desc::ShardingSpec &entry) {
      // Keys have the length of the sequence of queries.
      StringRef dimension = entry.dimension == "keys" ? "sequence" : StringRef(entry.dimension);
      return dimension == name && size % shardsOf(plan, &entry) != 0;
    });
  };
  return llvm::any_of(module.getOps<VariableOp>(), [&](VariableOp variable) {
    return llvm::any_of(llvm::zip_equal(variable.getDimensions().getAsRange<StringAttr>(),
                                        variable.getTensorType().getShape()),
                        [&](auto dim) {
                          auto [name, size] = dim;
                          return isUneven(name.getValue(), size);
                        });
  });
}

/// Returns the kinds of layers with functions of their own. Entries for the first kind are for all
/// layers, and others except from them.
std::vector<desc::LayerKind> findKinds(ModuleOp module) {
  std::vector<std::vector<int64_t>> firstLayers;
  if (auto kinds = module->getAttrOfType<ArrayAttr>(kLayerBordersAttrName)) {
    for (ArrayAttr kind : kinds.getAsRange<ArrayAttr>()) {
      std::vector<int64_t> &own = firstLayers.emplace_back();
      for (IntegerAttr layer : kind.getAsRange<IntegerAttr>()) {
        own.push_back(layer.getInt());
      }
    }
  }
  std::vector<desc::LayerKind> kinds = desc::kindsFrom(firstLayers);
  kinds.resize(std::max<size_t>(kinds.size(), 1));
  kinds[0] = {desc::LayerRange()};
  return kinds;
}

/// Returns the axes of a fact by `entries`, of which the last that matches holds.
std::optional<Axes> axesOf(const Fact &fact, const std::vector<desc::ShardingSpec> &entries) {
  for (const desc::ShardingSpec &entry : llvm::reverse(entries)) {
    if (entry.dimension == fact.dimension && llvm::any_of(fact.names, [&](const std::string &name) {
          return desc::matchesPattern(entry.value, name);
        })) {
      return entry.axes;
    }
  }
  return fact.byDefault;
}

/// Facts of ops or variables, by the number of their kind.
using FactsOfKinds = std::vector<std::vector<Fact>>;

class PlanWriter {
public:
  explicit PlanWriter(ModuleOp module)
      : module(module), mesh(getMesh(module)), names(module), dimensions(module),
        kinds(findKinds(module)) {}

  desc::PlanSpec run() {
    for (auto [name, size] : llvm::zip(mesh.getNames(), mesh.getSizes())) {
      plan.mesh.push_back({name.str(), size, {}});
    }
    if (plan.mesh.empty()) {
      return std::move(plan); // One rank leaves nothing to decide.
    }
    writeHomes();
    writeShardings();
    // Dimensions of one name may have many lengths in a graph, of which entries divide those that
    // they cut. Reviews of plans, which know only names, must not announce padding.
    plan.mayPad = hasPadding() || !areUneven(module, plan);
    return std::move(plan);
  }

private:
  bool hasPadding() {
    return llvm::any_of(module.getOps<VariableOp>(),
                        [](VariableOp variable) { return variable.getUnpadded().has_value(); });
  }

  /// An entry for all values must divide each length of its dimension's name, unless they are
  /// padded: other lengths take exceptions, but a plan without padding is refused for it
  /// (legal_r2).
  std::vector<desc::ShardingSpec> entriesFor(const std::vector<Fact> &facts) {
    bool isPadded = hasPadding();
    return summarize(facts,
                     [&](const std::string &dimension, const std::vector<std::string> &axes) {
                       desc::PlanSpec alone;
                       alone.mesh = plan.mesh;
                       alone.shardings = {{"*", dimension, axes, {}}};
                       return isPadded || !areUneven(module, alone);
                     });
  }

  /// Returns the number of the kind that a layer is of, 0 for null.
  size_t kindOf(std::optional<int64_t> layer) const {
    size_t found =
        layer ? desc::kindOf({kinds.begin() + 1, kinds.end()}, *layer) + 1 : kinds.size();
    return found == kinds.size() ? 0 : found;
  }

  /// Returns entries for the dimensions in which facts of a kind are not those of `entries`.
  std::vector<desc::ShardingSpec> exceptionsOf(size_t kind, const std::vector<Fact> &facts,
                                               const std::vector<desc::ShardingSpec> &entries) {
    std::set<std::string> others;
    for (const Fact &fact : facts) {
      if (axesOf(fact, entries) != fact.axes) {
        others.insert(fact.dimension);
      }
    }
    std::vector<Fact> chosen;
    llvm::copy_if(facts, std::back_inserter(chosen),
                  [&](const Fact &fact) { return others.count(fact.dimension) != 0; });
    const std::vector<desc::ShardingSpec> ofOneRun = entriesFor(chosen);
    std::vector<desc::ShardingSpec> exceptions;
    for (const desc::LayerRange &run : kinds[kind]) {
      for (desc::ShardingSpec entry : ofOneRun) {
        entry.layers = run;
        exceptions.push_back(std::move(entry));
      }
    }
    return exceptions;
  }

  void writeHomes() {
    FactsOfKinds facts(kinds.size());
    for (Home &home : findHomes(module)) {
      std::optional<int64_t> layer = desc::layerOfName(home.name);
      std::vector<Fact> &ofKind = facts[kindOf(layer)];
      ShardingAttr sharding = getSharding(home.type);
      for (auto [dim, dimension] :
           llvm::enumerate(home.variable.getDimensions().getAsRange<StringAttr>())) {
        if (!desc::isDimensionName(dimension.strref())) {
          continue; // No entry can cut it.
        }
        ofKind.push_back({{home.name},
                          patternsOf(home.name),
                          dimension.str(),
                          toNames(sharding.getDims()[dim]),
                          std::nullopt});
      }
      if (StringRef(home.name).starts_with("gradient/")) {
        ofKind.push_back({{home.name},
                          patternsOf(home.name),
                          "terms",
                          toNames(sharding.getUnreduced()),
                          std::nullopt});
      }
    }
    plan.homes = entriesFor(facts[0]);
    const std::vector<desc::ShardingSpec> ofAll = plan.homes;
    for (size_t kind = 1; kind < kinds.size(); ++kind) {
      llvm::append_range(plan.homes, exceptionsOf(kind, facts[kind], ofAll));
    }
  }

  void writeShardings() {
    FactsOfKinds facts(kinds.size()), unnamed(kinds.size());
    // Constraints that hold copies follow from homes.
    llvm::DenseSet<Operation *> held = WeightCopies(module).constraints();
    auto forEachOp = [&](llvm::function_ref<void(ShardableOpInterface)> visit) {
      module.walk([&](ShardableOpInterface op) {
        if (!held.contains(op)) {
          visit(op);
        }
      });
    };
    forEachOp([&](ShardableOpInterface op) {
      size_t kind = kindOf(names.layersOf(op).first);
      addFacts(op, facts[kind], unnamed[kind]);
    });
    // Entries by numbers stand before entries by names, which are better known.
    plan.shardings = entriesFor(unnamed[0]);
    llvm::append_range(plan.shardings, entriesFor(facts[0]));
    const std::vector<desc::ShardingSpec> ofAll = plan.shardings;
    std::set<std::vector<Statement>> stated = {{}};
    for (size_t kind = 1; kind < kinds.size(); ++kind) {
      llvm::append_range(plan.shardings, exceptionsOf(kind, unnamed[kind], ofAll));
      llvm::append_range(plan.shardings, exceptionsOf(kind, facts[kind], ofAll));
      stateKind(kind, facts[kind], stated);
    }
    // If an op has several names for one factor, or one for several, another entry follows.
    forEachOp([&](ShardableOpInterface op) {
      SmallVector<Attribute> wanted = pinsFor(op);
      if (pinsOf(op, names, dimensions, plan).pins != wanted) {
        pinWholly(op);
      }
      assert(pinsOf(op, names, dimensions, plan).pins == wanted);
    });
  }

  /// What an entry for a kind says, without layers.
  using Statement = std::tuple<bool, std::string, std::string, Axes>;

  std::vector<Statement> statementsOf(const desc::LayerRange &run) const {
    std::vector<Statement> statements;
    for (const auto *entries : {&plan.shardings, &plan.homes}) {
      for (const desc::ShardingSpec &entry : *entries) {
        if (entry.layers == run) {
          statements.emplace_back(entries == &plan.homes, entry.value, entry.dimension, entry.axes);
        }
      }
    }
    return statements;
  }

  /// Repeats facts of a kind until its entries say what those of no earlier kind do: the next plan
  /// takes the kinds from entries.
  void stateKind(size_t kind, const std::vector<Fact> &facts,
                 std::set<std::vector<Statement>> &stated) {
    for (auto fact = facts.begin();
         !stated.insert(statementsOf(kinds[kind].front())).second && fact != facts.end(); ++fact) {
      const std::string &value = fact->patterns.back();
      const bool isThere = llvm::any_of(plan.shardings, [&](const desc::ShardingSpec &entry) {
        return entry.value == value && entry.dimension == fact->dimension &&
               entry.layers == kinds[kind].front();
      });
      for (const desc::LayerRange &run : isThere ? desc::LayerKind() : kinds[kind]) {
        plan.shardings.push_back({value, fact->dimension, fact->axes, {}, 0, run});
      }
    }
  }

  OpSharding shardingOf(ShardableOpInterface op) {
    OpSharding found;
    found.factors = axesOfFactors(op, op.getFactorRule());
    found.mayHaveTerms = llvm::any_of(op->getOperandTypes(), canPend);
    for (StringAttr axis : mesh.getNames()) {
      addTerms(op, axis, found);
    }
    return found;
  }

  /// Returns the operands that are pending over `axis`: one, or "all".
  void addTerms(ShardableOpInterface op, StringAttr axis, OpSharding &found) {
    SmallVector<unsigned> pending;
    for (auto [number, type] : llvm::enumerate(op->getOperandTypes())) {
      ShardingAttr sharding = getSharding(type);
      if (sharding && llvm::is_contained(sharding.getUnreduced(), axis)) {
        pending.push_back(unsigned(number));
      }
    }
    if (!pending.empty()) {
      std::string operands = pending.size() == 1 ? std::to_string(pending[0]) : "all";
      SmallVector<Attribute> axes;
      if (ArrayAttr known = found.terms[operands]) {
        llvm::append_range(axes, known);
      }
      axes.push_back(axis);
      found.terms[operands] = ArrayAttr::get(op->getContext(), axes);
    }
  }

  void addFacts(ShardableOpInterface op, std::vector<Fact> &facts, std::vector<Fact> &unnamed) {
    OpSharding sharding = shardingOf(op);
    FactorRule rule = op.getFactorRule();
    std::string part = names.partOf(op).str(), full = names.nameOf(op).str();
    std::string kind = full.substr(0, full.rfind('/') + 1) + "*";
    Fact fact{{full}, {"*"}, "", {}, std::nullopt};
    if (!part.empty()) {
      std::vector<std::string> patterns = patternsOf(part);
      fact.names.push_back(part);
      fact.patterns.insert(fact.patterns.end(), patterns.begin() + 1, patterns.end() - 1);
    }
    // Entries for all layers stand before those for one.
    fact.patterns.push_back(withoutNumbers(full));
    if (!part.empty()) {
      fact.patterns.push_back(part);
    }
    fact.patterns.insert(fact.patterns.end(), {kind, full});
    std::set<std::string> taken;
    for (auto [number, factor] : llvm::enumerate(rule.factors)) {
      if (factor.kind == FactorKind::MustReplicate) {
        continue;
      }
      std::string name = nameOf(op, rule, unsigned(number));
      bool isNamed = !name.empty() && taken.insert(name).second;
      fact.dimension = isNamed ? name : "factor" + std::to_string(number);
      fact.axes = toNames(sharding.factors[number]);
      (isNamed ? facts : unnamed).push_back(fact);
    }
    if (!sharding.mayHaveTerms) {
      return;
    }
    fact.dimension = "terms";
    auto all = sharding.terms.find("all");
    fact.axes = all == sharding.terms.end() ? Axes() : toNames(all->second);
    facts.push_back(fact);
    fact.byDefault = Axes();
    for (unsigned number = 0; number < op->getNumOperands(); ++number) {
      auto single = sharding.terms.find(std::to_string(number));
      fact.dimension = "terms" + std::to_string(number);
      fact.axes = single == sharding.terms.end() ? Axes() : toNames(single->second);
      facts.push_back(fact);
    }
  }

  /// Returns the name of a factor in plans; empty if it has none.
  std::string nameOf(ShardableOpInterface op, const FactorRule &rule, unsigned number) {
    if (rule.factors[number].kind == FactorKind::Permutation) {
      return "keys";
    }
    for (StringRef name : dimensions.namesOf(op, rule, number)) {
      if (desc::isDimensionName(name)) {
        return name.str();
      }
    }
    return "";
  }

  /// Returns the pins that `pinsOf` must give `op`.
  SmallVector<Attribute> pinsFor(ShardableOpInterface op) {
    OpSharding sharding = shardingOf(op);
    SmallVector<Attribute> pins;
    for (auto [factor, axes] : llvm::zip(op.getFactorRule().factors, sharding.factors)) {
      bool isWhole = factor.kind == FactorKind::MustReplicate;
      pins.push_back(isWhole ? Attribute(UnitAttr::get(op->getContext())) : axes);
    }
    if (sharding.mayHaveTerms) {
      SmallVector<NamedAttribute> terms;
      for (auto &[operands, axes] : sharding.terms) {
        terms.emplace_back(StringAttr::get(op->getContext(), operands), axes);
      }
      pins.push_back(DictionaryAttr::get(op->getContext(), terms));
    }
    return pins;
  }

  /// Adds entries for this op alone, which call factors by their numbers, as these are unique. They
  /// replace earlier ones, behind which there are weaker entries by names.
  void pinWholly(ShardableOpInterface op) {
    OpSharding sharding = shardingOf(op);
    std::string name = names.nameOf(op).str();
    for (const desc::LayerRange &run : kinds[kindOf(names.layersOf(op).first)]) {
      pinWholly(sharding, name, run);
    }
  }

  void pinWholly(const OpSharding &sharding, const std::string &name,
                 const desc::LayerRange &layers) {
    llvm::erase_if(plan.shardings, [&](const desc::ShardingSpec &entry) {
      return entry.value == name && entry.layers == layers &&
             StringRef(entry.dimension).starts_with("factor");
    });
    for (auto [number, axes] : llvm::enumerate(sharding.factors)) {
      std::string dimension = "factor" + std::to_string(number);
      // Of two entries of a value and a dimension, only the last would hold.
      std::erase_if(plan.shardings, [&](const desc::ShardingSpec &entry) {
        return entry.value == name && entry.dimension == dimension && entry.layers == layers;
      });
      plan.shardings.push_back({name, dimension, toNames(axes), {}, 0, layers});
    }
  }

  ModuleOp module;
  MeshAttr mesh;
  OpNames names;
  Dimensions dimensions;
  std::vector<desc::LayerKind> kinds;
  desc::PlanSpec plan;
};

} // namespace

desc::PlanSpec weft::writePlan(ModuleOp module) { return PlanWriter(module).run(); }

std::vector<desc::VariableShape> weft::listHomes(ModuleOp module) {
  std::vector<desc::VariableShape> shapes;
  for (Home &home : findHomes(module)) {
    if (home.variable.getRole() != VariableRole::Input) {
      desc::VariableShape &shape = shapes.emplace_back();
      shape.name = home.name;
      shape.bytes = double(countBytes(home.type));
      for (StringAttr dimension : home.variable.getDimensions().getAsRange<StringAttr>()) {
        shape.dimensions.push_back(dimension.str());
      }
    }
  }
  return shapes;
}
