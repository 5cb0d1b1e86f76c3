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
  FunctionComparison(ModuleOp local, ModuleOp scheduled)
      : ops(arrays, local->getAttrOfType<MeshAttr>(kMeshAttrName)), before(local, ops),
        after(scheduled, ops) {}

  bool isSame(StringRef section);
  bool isTable(ModuleOp scheduled, const rt::Program &program) {
    return isTableOf(scheduled, program, arrays, ops);
  }

private:
  /// Compares the functions that `function` calls, callees first; returns true if it and they give
  /// nothing but results.
  bool compareCallees(func::FuncOp function);
  bool hasSameResults(func::FuncOp function);
  void addUnchanged(SectionResult &result, const SectionResult &other);

  Arrays arrays;
  LocalOps ops;
  LocalModule before, after;
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
        after.close(callee.getSymName());
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
  func::FuncOp other = after.lookup(function.getSymName());
  if (!other || !areAlike(function.getArgumentTypes(), other.getArgumentTypes()) ||
      !areAlike(function.getResultTypes(), other.getResultTypes())) {
    return false;
  }
  LocalValues arguments;
  for (auto [number, type] : llvm::enumerate(function.getArgumentTypes())) {
    Words words;
    words << uint64_t('a') << function.getSymName() << uint64_t(number);
    arguments.push_back(ops.unknown(words.print(), type));
  }
  LocalValues wanted = before.call(function, arguments);
  ops.endExpected();
  LocalValues got = after.call(other, arguments);
  return llvm::equal(wanted, got, [](const LocalValue &one, const LocalValue &other) {
    return one.array == other.array && one.number == other.number;
  });
}

/// A variable that a section does not assign keeps its value.
void FunctionComparison::addUnchanged(SectionResult &result, const SectionResult &other) {
  for (const auto &[name, array] : other.variables) {
    int64_t count = arrays[array].count;
    result.variables.try_emplace(name, ops.variable(name, count).array);
  }
}

bool FunctionComparison::isSame(StringRef section) {
  func::FuncOp function = before.lookup(section), other = after.lookup(section);
  if (!function || !other) {
    return !function && !other;
  }
  compareCallees(function);
  SectionResult wanted = before.run(function);
  ops.endExpected();
  SectionResult got = after.run(other);
  addUnchanged(wanted, got);
  addUnchanged(got, wanted);
  return wanted == got;
}

} // namespace

bool proveFunctions(ModuleOp local, ModuleOp scheduled, const rt::Program &program) {
  FunctionComparison comparison(local, scheduled);
  return llvm::all_of(ArrayRef<StringRef>{"init", "step", "evaluate"},
                      [&](StringRef section) { return comparison.isSame(section); }) &&
         comparison.isTable(scheduled, program);
}

} // namespace weft::meaning
