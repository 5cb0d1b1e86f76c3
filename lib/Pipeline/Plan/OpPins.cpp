//===- OpPins.cpp - pins of ops by a plan ---------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OpPins.h"

#include "LayoutSpaces.h"

#include "weft/Dialect/Weft/IR/AttributeNames.h"

#include "llvm/ADT/StringExtras.h"

#include <map>

using namespace mlir;

namespace weft {

/// Returns the variable that `value` is assigned to, perhaps after a reshard; empty if there is
/// none.
static StringRef variableOf(Value value) {
  for (Operation *user : value.getUsers()) {
    if (auto assign = dyn_cast<AssignOp>(user)) {
      return assign.getVariable();
    }
    if (auto reshard = dyn_cast<ReshardOp>(user)) {
      if (StringRef found = variableOf(reshard.getOutput()); !found.empty()) {
        return found;
      }
    }
  }
  return "";
}

/// Ops that compute a variable's initial value are named after the variable, others after their
/// location.
static StringRef partOf(Operation *op) {
  bool isFirst = llvm::none_of(op->getOperandTypes(), llvm::IsaPred<RankedTensorType>) &&
                 op->getNumResults() == 1;
  StringRef variable = isFirst ? variableOf(op->getResult(0)) : "";
  auto location = op->getLoc()->findInstanceOf<NameLoc>();
  return !variable.empty() ? variable : location ? location.getName().getValue() : "";
}

/// What stands before the kind in the name of an op of padding. Such ops have numbers of their own,
/// so that the names of others depend on no padding.
static constexpr llvm::StringLiteral kPaddingPrefix = "padding/";

bool namesOpOfPadding(StringRef pattern) { return pattern.contains(("/" + kPaddingPrefix).str()); }

namespace {

/// Counts ops of each kind. A copy of a function counts from where its original does, so that names
/// do not depend on which layers have functions of their own.
class OpCounts {
public:
  void begin(func::FuncOp function) {
    end();
    auto copyOf = function->getAttrOfType<StringAttr>(kCopyOfAttrName);
    current = copyOf ? atOriginals.lookup(copyOf.getValue()) : all;
    if (!copyOf) {
      atOriginals[function.getSymName()] = all;
    }
  }
  unsigned next(StringRef kind) { return ++current[kind]; }

private:
  void end() {
    for (const auto &entry : current) {
      unsigned &count = all[entry.getKey()];
      count = std::max(count, entry.getValue());
    }
  }

  llvm::StringMap<unsigned> all, current;
  /// Where originals began.
  llvm::StringMap<llvm::StringMap<unsigned>> atOriginals;
};

} // namespace

OpNames::OpNames(ModuleOp module) : uses(module) {
  OpCounts counts;
  for (auto function : module.getOps<func::FuncOp>()) {
    counts.begin(function);
    function.walk([&](ShardableOpInterface op) {
      std::string part = desc::planNameOf(weft::partOf(op));
      StringRef prefix = op->hasAttr(kOfPaddingAttrName) ? StringRef(kPaddingPrefix) : "";
      std::string kind = (part + "/" + prefix + op->getName().stripDialect() + "/").str();
      std::string full = kind + std::to_string(counts.next(kind));
      names[op] = {std::move(part), std::move(full)};
    });
  }
}

OpLayers OpNames::layersOf(Operation *op) const {
  if (const auto *all = uses.of(op->getParentOfType<func::FuncOp>())) {
    return {*all->begin(), all};
  }
  return {desc::layerOfName(names.find(op)->second.part)};
}

bool OpNames::matches(const std::string &pattern, Operation *op) const {
  const Names &found = names.find(op)->second;
  return desc::matchesPattern(pattern, found.part) || desc::matchesPattern(pattern, found.full);
}

ArrayAttr toAxesAttr(MLIRContext *context, const std::vector<std::string> &axes) {
  return ArrayAttr::get(context, llvm::map_to_vector(axes, [&](const std::string &axis) {
                          return Attribute(StringAttr::get(context, axis));
                        }));
}

/// Returns the number of the operand whose terms the entry names, or "all".
static std::optional<StringRef> termsOf(const desc::ShardingSpec &entry) {
  StringRef dimension = entry.dimension;
  if (!dimension.consume_front("terms")) {
    return std::nullopt;
  }
  return dimension.empty() ? "all" : dimension;
}

/// Returns null if no entry names terms.
static DictionaryAttr termsOf(MLIRContext *context, ArrayRef<const desc::ShardingSpec *> entries) {
  llvm::StringMap<ArrayAttr> terms;
  for (const desc::ShardingSpec *entry : entries) {
    if (auto operands = termsOf(*entry)) {
      terms.try_emplace(*operands, toAxesAttr(context, entry->axes));
    }
  }
  SmallVector<NamedAttribute> list;
  for (auto &[operands, axes] : terms) {
    if (!axes.empty()) {
      list.emplace_back(StringAttr::get(context, operands), axes);
    }
  }
  return terms.empty() ? DictionaryAttr() : DictionaryAttr::get(context, list);
}

/// Returns the entries that match `op`, the strongest first.
static SmallVector<const desc::ShardingSpec *>
entriesOf(ShardableOpInterface op, const OpNames &names, const desc::PlanSpec &plan) {
  SmallVector<const desc::ShardingSpec *> entries;
  const std::optional<int64_t> layer = names.layersOf(op).first;
  for (const desc::ShardingSpec &entry : llvm::reverse(plan.shardings)) {
    if (entry.layers.has(layer) && names.matches(entry.value, op)) {
      entries.push_back(&entry);
    }
  }
  llvm::sort(entries, [](const auto *a, const auto *b) {
    return a->priority != b->priority ? a->priority < b->priority : a > b;
  });
  return entries;
}

/// Returns the strongest entry for each factor of the rule, or null.
static SmallVector<const desc::ShardingSpec *>
matchFactors(ShardableOpInterface op, const FactorRule &rule, StringRef opName,
             ArrayRef<const desc::ShardingSpec *> entries, Dimensions &dimensions) {
  SmallVector<const desc::ShardingSpec *> found;
  for (auto [number, factor] : llvm::enumerate(rule.factors)) {
    bool isPermutation = factor.kind == FactorKind::Permutation;
    SmallVector<StringRef> known = dimensions.namesOf(op, rule, unsigned(number));
    SmallVector<StringRef> ofOne = dimensions.namesOfOne(op, rule, unsigned(number));
    std::string ownName = "factor" + std::to_string(number);
    auto entry = llvm::find_if(entries, [&](const desc::ShardingSpec *one) {
      // A permuted factor has its partner's names, but plans call it "keys".
      return one->dimension == ownName ||
             (isPermutation
                  ? one->dimension == "keys"
                  : llvm::is_contained(one->value == opName ? ofOne : known, one->dimension));
    });
    found.push_back(entry == entries.end() ? nullptr : *entry);
  }
  return found;
}

int64_t shardsOf(const desc::PlanSpec &plan, const desc::ShardingSpec *entry) {
  int64_t shards = 1;
  for (const std::string &axis : entry ? entry->axes : std::vector<std::string>()) {
    shards *= plan.axis(axis)->size;
  }
  return shards;
}

/// Returns the factors with entries, in the order in which they take axes: those of stronger
/// entries first, then those of results, which avoids pending sums.
static SmallVector<size_t> inOrderOfPins(const FactorRule &rule,
                                         ArrayRef<const desc::ShardingSpec *> ofFactors) {
  SmallVector<size_t> order;
  for (size_t number = 0; number < ofFactors.size(); ++number) {
    if (ofFactors[number]) {
      order.push_back(number);
    }
  }
  auto keyOf = [&](size_t number) {
    bool isSummed = rule.factors[number].kind == FactorKind::Reduction;
    return std::tuple(ofFactors[number]->priority, isSummed, number);
  };
  llvm::sort(order, [&](size_t a, size_t b) { return keyOf(a) < keyOf(b); });
  return order;
}

FactorEntries entriesOfFactors(ShardableOpInterface op, const FactorRule &rule,
                               const OpNames &names, Dimensions &dimensions,
                               const desc::PlanSpec &plan, bool evenOnly) {
  SmallVector<const desc::ShardingSpec *> ofFactors =
      matchFactors(op, rule, names.nameOf(op), entriesOf(op, names, plan), dimensions);
  FactorEntries found;
  found.entries.assign(rule.factors.size(), nullptr);
  std::map<std::string, const desc::ShardingSpec *> taken;
  for (size_t number : inOrderOfPins(rule, ofFactors)) {
    const Factor &factor = rule.factors[number];
    const desc::ShardingSpec *entry = ofFactors[number];
    if (factor.kind == FactorKind::MustReplicate ||
        (evenOnly && factor.size % shardsOf(plan, entry) != 0)) {
      continue;
    }
    auto other = factor.kind == FactorKind::Permutation
                     ? entry->axes.end()
                     : llvm::find_if(entry->axes,
                                     [&](const std::string &axis) { return taken.contains(axis); });
    if (other != entry->axes.end()) {
      if (taken[*other]->priority < entry->priority) {
        found.overruled.push_back({entry, taken[*other]});
      }
      continue;
    }
    for (const std::string &axis : entry->axes) {
      taken.try_emplace(axis, entry);
    }
    found.entries[number] = entry;
  }
  return found;
}

OpPins pinsOf(ShardableOpInterface op, const OpNames &names, Dimensions &dimensions,
              const desc::PlanSpec &plan) {
  MLIRContext *context = op->getContext();
  FactorEntries held =
      entriesOfFactors(op, op.getFactorRule(), names, dimensions, plan, /*evenOnly=*/true);
  OpPins found{{}, std::move(held.entries), std::move(held.overruled)};
  for (const desc::ShardingSpec *entry : found.entries) {
    found.pins.push_back(entry ? Attribute(toAxesAttr(context, entry->axes))
                               : UnitAttr::get(context));
  }
  DictionaryAttr terms = termsOf(context, entriesOf(op, names, plan));
  if (terms && llvm::any_of(op->getOperandTypes(), canPend)) {
    found.pins.push_back(terms);
    found.entries.push_back(nullptr);
  }
  return found;
}

} // namespace weft
