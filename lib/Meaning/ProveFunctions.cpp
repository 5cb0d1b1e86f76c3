//===- ProveFunctions.cpp - a table, proven one function at a time --------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProveFunctions.h"

#include "ValueNumbering.h"

#include "weft/Dialect/Weft/IR/AttributeNames.h"

using namespace mlir;

namespace weft::meaning {

namespace {

class FunctionComparison {
public:
  FunctionComparison(ModuleOp local, ArrayRef<ModuleOp> scheduled)
      : ops(arrays, local->getAttrOfType<MeshAttr>(kMeshAttrName)), before(local, ops) {
    for (auto [rankClass, module] : llvm::enumerate(scheduled)) {
      after.emplace_back(module, ops, uint32_t(rankClass));
    }
  }

  bool isSame(StringRef section);
  bool isTable(ModuleOp scheduled, const rt::Program &program) {
    return isTableOf(scheduled, program, arrays, ops);
  }

private:
  /// Compares the functions that `function` calls, callees first; returns true if it and they give
  /// nothing but results.
  bool compareCallees(func::FuncOp function);
  /// Compares a function with those of its name in the modules after Schedule that have it.
  bool hasSameResults(func::FuncOp function);
  bool runTogether(StringRef section);
  std::optional<SectionResult> joinResults(const SectionResult &wanted);
  void addUnchanged(SectionResult &result, const SectionResult &other);

  Arrays arrays;
  LocalOps ops;
  LocalModule before;
  /// Of each rank class.
  std::deque<LocalModule> after;
  /// Of functions that were compared: whether they give nothing but results.
  llvm::DenseMap<Operation *, bool> isPure;
};

bool FunctionComparison::compareCallees(func::FuncOp function) {
  bool isOwn = true;
  for (Operation &op : function.getBody().front()) {
    isOwn = isOwn && !isa<AssignOp, ObserveOp>(op);
    auto call = dyn_cast<CallOp>(op);
    if (!call) {
      continue;
    }
    func::FuncOp callee = before.lookup(call.getCallee());
    auto known = isPure.find(callee);
    if (known == isPure.end()) {
      bool isCalleePure = compareCallees(callee);
      known = isPure.try_emplace(callee, isCalleePure).first;
      if (isCalleePure && hasSameResults(callee)) {
        before.close(callee.getSymName());
        for (LocalModule &module : after) {
          module.close(callee.getSymName());
        }
      }
    }
    isOwn = isOwn && known->second;
  }
  return isOwn;
}

/// Types may differ in the width of elements: rounding is not looked at.
static bool areAlike(ArrayRef<Type> left, ArrayRef<Type> right) {
  return llvm::equal(left, right, [](Type one, Type other) {
    bool isNumber = one.isIndex();
    return isNumber == other.isIndex() && (isNumber || countOf(one) == countOf(other));
  });
}

bool FunctionComparison::hasSameResults(func::FuncOp function) {
  LocalValues arguments;
  for (auto [number, type] : llvm::enumerate(function.getArgumentTypes())) {
    Words words;
    words << uint64_t('a') << function.getSymName() << uint64_t(number);
    arguments.push_back(ops.unknown(words.print(), type));
  }
  LocalValues wanted = before.call(function, arguments);
  ops.endExpected();
  bool isThere = false;
  for (LocalModule &module : after) {
    func::FuncOp other = module.lookup(function.getSymName());
    if (!other) {
      continue; // A function of other stages.
    }
    isThere = true;
    if (!areAlike(function.getArgumentTypes(), other.getArgumentTypes()) ||
        !areAlike(function.getResultTypes(), other.getResultTypes())) {
      return false;
    }
    LocalValues got = module.call(other, arguments);
    if (!llvm::equal(wanted, got, [](const LocalValue &one, const LocalValue &own) {
          return one.array == own.array && one.number == own.number;
        })) {
      return false;
    }
  }
  return isThere;
}

/// A variable that a section does not assign keeps its value.
void FunctionComparison::addUnchanged(SectionResult &result, const SectionResult &other) {
  for (const auto &[name, array] : other.variables) {
    int64_t count = arrays[array].count;
    result.variables.try_emplace(name, ops.variable(name, count).array);
  }
}

/// Returns false if a class waits for what no other sends, or one sends what none receives.
bool FunctionComparison::runTogether(StringRef section) {
  Transfers transfers;
  for (LocalModule &module : after) {
    module.begin(module.lookup(section));
  }
  goTogether(after, [&](LocalModule &module) { return module.advance(transfers); });
  return !transfers.findLeft() &&
         llvm::all_of(after, [](LocalModule &module) { return module.isAtEnd(); });
}

/// Returns what all classes give. None if two assign a variable, or if one observes other values
/// than `wanted`: several may observe the same.
std::optional<SectionResult> FunctionComparison::joinResults(const SectionResult &wanted) {
  SectionResult all;
  for (const LocalModule &module : after) {
    const SectionResult &own = module.given();
    for (const auto &[name, array] : own.variables) {
      if (!all.variables.try_emplace(name, array).second) {
        return std::nullopt;
      }
    }
    for (const auto &[name, values] : own.observed) {
      auto expected = wanted.observed.find(name);
      if (expected == wanted.observed.end() || expected->second != values) {
        return std::nullopt;
      }
      all.observed[name] = values;
    }
  }
  return all;
}

bool FunctionComparison::isSame(StringRef section) {
  func::FuncOp function = before.lookup(section);
  auto has = [&](LocalModule &module) { return bool(module.lookup(section)); };
  if (!function || !llvm::all_of(after, has)) {
    return !function && llvm::none_of(after, has);
  }
  compareCallees(function);
  SectionResult wanted = before.run(function);
  ops.endExpected();
  std::optional<SectionResult> got =
      runTogether(section) ? joinResults(wanted) : std::optional<SectionResult>();
  if (!got) {
    return false;
  }
  addUnchanged(wanted, *got);
  addUnchanged(*got, wanted);
  return wanted == *got;
}

} // namespace

bool proveFunctions(ModuleOp local, ArrayRef<ModuleOp> scheduled, ArrayRef<rt::Program> programs) {
  FunctionComparison comparison(local, scheduled);
  return llvm::all_of(ArrayRef<StringRef>{"init", "step", "evaluate"},
                      [&](StringRef section) { return comparison.isSame(section); }) &&
         llvm::all_of(llvm::zip_equal(scheduled, programs), [&](auto own) {
           return comparison.isTable(std::get<0>(own), std::get<1>(own));
         });
}

} // namespace weft::meaning
