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

OpNames::OpNames(ModuleOp module) {
  llvm::StringMap<unsigned> counts;
  module.walk([&](ShardableOpInterface op) {
    std::string part = weft::partOf(op).str();
    // Leaves room for the suffix, see plan_r5.
    part.resize(std::min<size_t>(part.size(), 200));
    for (char &c : part) {
      c = llvm::isAlnum(c) || StringRef("._/-").contains(c) ? c : '_';
    }
    StringRef prefix = op->hasAttr(kOfPaddingAttrName) ? StringRef(kPaddingPrefix) : "";
    std::string kind = (part + "/" + prefix + op->getName().stripDialect() + "/").str();
    std::string full = kind + std::to_string(++counts[kind]);
    names[op] = {std::move(part), std::move(full)};
  });
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
  for (const desc::ShardingSpec &entry : llvm::reverse(plan.shardings)) {
    if (names.matches(entry.value, op)) {
      entries.push_back(&entry);
    }
  }
  llvm::sort(entries, [](const auto *a, const auto *b) {
    return a->priority != b->priority ? a->priority < b->priority : a > b;
  });
  return entries;
}

/// Returns the entry for each factor of the rule, or null.
static SmallVector<const desc::ShardingSpec *>
entriesOfFactors(ShardableOpInterface op, const FactorRule &rule, StringRef opName,
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

OpPins pinsOf(ShardableOpInterface op, MeshAttr mesh, const OpNames &names, Dimensions &dimensions,
              const desc::PlanSpec &plan) {
  MLIRContext *context = op->getContext();
  SmallVector<const desc::ShardingSpec *> entries = entriesOf(op, names, plan);
  FactorRule rule = op.getFactorRule();
  SmallVector<const desc::ShardingSpec *> ofFactors =
      entriesOfFactors(op, rule, names.nameOf(op), entries, dimensions);
  OpPins found;
  found.pins.assign(rule.factors.size(), UnitAttr::get(context));
  found.entries.assign(rule.factors.size(), nullptr);
  llvm::SmallDenseMap<Attribute, const desc::ShardingSpec *> taken;
  for (size_t number : inOrderOfPins(rule, ofFactors)) {
    const Factor &factor = rule.factors[number];
    const desc::ShardingSpec *entry = ofFactors[number];
    ArrayAttr axes = toAxesAttr(context, entry->axes);
    if (factor.kind == FactorKind::MustReplicate || factor.size % mesh.getSize(axes) != 0) {
      continue;
    }
    const Attribute *other =
        factor.kind == FactorKind::Permutation
            ? axes.end()
            : llvm::find_if(axes, [&](Attribute axis) { return taken.contains(axis); });
    if (other != axes.end()) {
      if (taken[*other]->priority < entry->priority) {
        found.overruled.push_back({entry, taken[*other]});
      }
      continue;
    }
    for (Attribute axis : axes) {
      taken.try_emplace(axis, entry);
    }
    found.pins[number] = axes;
    found.entries[number] = entry;
  }
  DictionaryAttr terms = termsOf(context, entries);
  if (terms && llvm::any_of(op->getOperandTypes(), canPend)) {
    found.pins.push_back(terms);
    found.entries.push_back(nullptr);
  }
  return found;
}

} // namespace weft
