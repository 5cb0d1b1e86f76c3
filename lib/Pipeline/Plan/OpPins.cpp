//===- OpPins.cpp - what a plan says of ops -------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OpPins.h"

#include "LayoutSpaces.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace weft {

/// The variable that gets `value`, maybe under another sharding; empty where none does.
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

/// What makes a variable's first value goes by the variable's name, others by their location's.
static StringRef partOf(Operation *op) {
  bool isFirst = llvm::none_of(op->getOperandTypes(), llvm::IsaPred<RankedTensorType>) &&
                 op->getNumResults() == 1;
  StringRef variable = isFirst ? variableOf(op->getResult(0)) : "";
  auto location = op->getLoc()->findInstanceOf<NameLoc>();
  return !variable.empty() ? variable : location ? location.getName().getValue() : "";
}

OpNames::OpNames(ModuleOp module) {
  llvm::StringMap<unsigned> counts;
  module.walk([&](ShardableOpInterface op) {
    std::string part = weft::partOf(op).str();
    // Leaves room for what follows, see plan_r5.
    part.resize(std::min<size_t>(part.size(), 200));
    for (char &c : part) {
      c = llvm::isAlnum(c) || StringRef("._/-").contains(c) ? c : '_';
    }
    std::string kind = part + "/" + op->getName().stripDialect().str() + "/";
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

/// The number of the operand that an entry gives terms to, or "all".
static std::optional<StringRef> termsOf(const desc::ShardingSpec &entry) {
  StringRef dimension = entry.dimension;
  if (!dimension.consume_front("terms")) {
    return std::nullopt;
  }
  return dimension.empty() ? "all" : dimension;
}

/// Null where no entry speaks of terms.
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

/// Of several factors for one axis the first that results have is cut, so that nothing is pending
/// that need not be.
static SmallVector<size_t> inOrderOfPins(const FactorRule &rule) {
  SmallVector<size_t> order, summed;
  for (auto [number, factor] : llvm::enumerate(rule.factors)) {
    (factor.kind == FactorKind::Reduction ? summed : order).push_back(number);
  }
  order.append(summed);
  return order;
}

SmallVector<Attribute> pinsOf(ShardableOpInterface op, MeshAttr mesh, const OpNames &names,
                              Dimensions &dimensions, const desc::PlanSpec &plan) {
  MLIRContext *context = op->getContext();
  SmallVector<const desc::ShardingSpec *> entries; // The last of the plan first.
  for (const desc::ShardingSpec &entry : llvm::reverse(plan.shardings)) {
    if (names.matches(entry.value, op)) {
      entries.push_back(&entry);
    }
  }
  FactorRule rule = op.getFactorRule();
  SmallVector<Attribute> pins(rule.factors.size(), UnitAttr::get(context)), taken;
  for (size_t number : inOrderOfPins(rule)) {
    const Factor &factor = rule.factors[number];
    bool isPermutation = factor.kind == FactorKind::Permutation;
    SmallVector<StringRef> known = dimensions.namesOf(op, rule, unsigned(number));
    std::string ownName = "factor" + std::to_string(number);
    auto found = llvm::find_if(entries, [&](const desc::ShardingSpec *entry) {
      // What a permutation is of has its partner's names, and this one besides.
      return entry->dimension == ownName ||
             (isPermutation ? entry->dimension == "keys"
                            : llvm::is_contained(known, entry->dimension));
    });
    auto axes = found == entries.end() ? ArrayAttr() : toAxesAttr(context, (*found)->axes);
    bool isTaken = axes && !isPermutation && llvm::any_of(axes, [&](Attribute axis) {
                     return llvm::is_contained(taken, axis);
                   });
    if (axes && !isTaken && factor.kind != FactorKind::MustReplicate &&
        factor.size % mesh.getSize(axes) == 0) {
      llvm::append_range(taken, axes);
      pins[number] = axes;
    }
  }
  DictionaryAttr terms = termsOf(context, entries);
  if (terms && llvm::any_of(op->getOperandTypes(), canPend)) {
    pins.push_back(terms);
  }
  return pins;
}

} // namespace weft
