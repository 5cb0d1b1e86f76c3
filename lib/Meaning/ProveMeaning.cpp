//===- ProveMeaning.cpp - the parallel program computes what the model says --------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Meaning/ProveMeaning.h"

#include "Interpreter.h"

#include "weft/Dialect/Weft/IR/AttributeNames.h"
#include "weft/Dialect/Weft/IR/Sharding.h"

using namespace mlir;

namespace weft {
namespace meaning {
namespace {

InputSizes inputSizesOf(ModuleOp whole, ModuleOp parallel) {
  InputSizes sizes;
  SymbolTable symbols(whole);
  for (VariableOp variable : parallel.getOps<VariableOp>()) {
    auto before = symbols.lookup<VariableOp>(variable.getSymName());
    if (!before || variable.getRole() != VariableRole::Input) {
      continue;
    }
    ArrayRef<int64_t> shape =
        variable.getUnpadded() ? *variable.getUnpadded() : variable.getTensorType().getShape();
    SmallVector<int64_t> size(shape);
    if (int64_t(shape.size()) == before.getTensorType().getRank() + 1) {
      size.erase(size.begin());
      size.front() *= shape.front();
    }
    sizes[variable.getSymName()] = std::move(size);
  }
  return sizes;
}

class Comparison {
public:
  Comparison(ModuleOp whole, ModuleOp parallel)
      : whole(whole), parallel(parallel), inputs(inputSizesOf(whole, parallel)),
        expected(MeshAttr(), terms, regions, inputs),
        got(parallel->getAttrOfType<MeshAttr>(kMeshAttrName), terms, regions, inputs) {}

  LogicalResult run();

private:
  LogicalResult compare(func::FuncOp root, func::FuncOp other);
  void runWhole(func::FuncOp root);
  LogicalResult compare(const Given &given, const Value &expectedValue);
  /// What is wrong with the places of the elements that ranks have.
  std::optional<std::string> misplaced(const Given &given, const Value &value, TermId term);
  LogicalResult report(const Given &given, Location location, const llvm::Twine &reason);
  /// The first op on the way from the operands whose term is not that of the whole program.
  TermId firstOther(TermId mine, TermId theirs);

  ModuleOp whole, parallel;
  Terms terms;
  Regions regions;
  InputSizes inputs;
  Evaluation expected, got;
  /// By root and name: the values that the program before Plan gives.
  std::map<Operation *, std::map<std::string, std::vector<uint32_t>>> before;
};

LogicalResult Comparison::report(const Given &given, Location location, const llvm::Twine &reason) {
  bool isVariable = given.name.front() == '@';
  InFlightDiagnostic error = emitError(location)
                             << "prove-meaning: " << reason << "; so "
                             << (isVariable ? "the new value of '" : "the observed value '")
                             << (isVariable ? given.name.substr(1) : given.name)
                             << "' is not the model's";
  error.attachNote(given.op->getLoc()) << "it is given here";
  return error;
}

TermId Comparison::firstOther(TermId mine, TermId theirs) {
  const Term &own = terms[mine], &other = terms[theirs];
  bool isAlike = own.function == other.function && own.result == other.result &&
                 own.operands.size() == other.operands.size();
  for (size_t number = 0; isAlike && number < own.operands.size(); ++number) {
    TermId operand = own.operands[number].term, whole = other.operands[number].term;
    bool isOp = !terms.asConstant(operand); // Constants have no place of their own.
    if (operand != whole && isOp) {
      return firstOther(operand, whole);
    }
  }
  return mine;
}

std::optional<std::string> Comparison::misplaced(const Given &given, const Value &value,
                                                 TermId term) {
  auto assign = dyn_cast<AssignOp>(given.op);
  auto observe = dyn_cast<ObserveOp>(given.op);
  VariableOp variable;
  RankedTensorType type;
  std::optional<ArrayRef<int64_t>> unpadded;
  if (assign) {
    variable = SymbolTable::lookupNearestSymbolFrom<VariableOp>(given.op, assign.getVariableAttr());
    type = variable.getTensorType();
    unpadded = variable.getUnpadded();
  } else {
    type = cast<RankedTensorType>(observe.getLayout().value_or(observe.getValue().getType()));
    unpadded = observe.getUnpadded();
  }
  for (auto [number, dim] : llvm::enumerate(value.dims)) {
    std::string which = "dimension " + std::to_string(number);
    std::optional<uint32_t> start = got.startOf(type, int64_t(number));
    int64_t size = unpadded ? (*unpadded)[number] : type.getDimSize(unsigned(number));
    if (assign && variable.getRole() != VariableRole::Input && !got.isZeroBeyond(dim)) {
      return "the padding of " + which + " is not zero";
    }
    if (dim.ofTerm < 0) {
      continue;
    }
    // An observed value may be that of one micro-batch.
    std::optional<int64_t> distance =
        start ? got.getRanks().asConstant(got.getRanks().add(dim.start, *start, -1)) : std::nullopt;
    bool isPlaced = assign ? distance == 0 && size == dim.size
                           : distance && (*distance == 0 || *distance % size == 0);
    if (!isPlaced || dim.order) {
      return "ranks do not have the shards of " + which + " that their sharding says";
    }
  }
  if (terms[term].sizes.size() > value.dims.size()) {
    return "it lacks a dimension";
  }
  return std::nullopt;
}

LogicalResult Comparison::compare(const Given &given, const Value &expectedValue) {
  const Value &value = got[given.value];
  if (expectedValue.fault) {
    const Fault &fault = expected.faultOf(expectedValue);
    return report(given, fault.location,
                  "the program before Plan: " + fault.op + " " + fault.reason);
  }
  if (value.fault) {
    const Fault &fault = got.faultOf(value);
    return report(given, fault.location, fault.op + " " + fault.reason);
  }
  if (value.term != expectedValue.term) {
    const Term &other = terms[firstOther(value.term, expectedValue.term)];
    return report(given, other.location,
                  (other.label.empty() ? other.function.getValue() : llvm::StringRef(other.label)) +
                      " computes something else than the program before Plan");
  }
  if (value.isPending()) {
    return report(given, given.op->getLoc(), "ranks have parts of a sum, not the whole");
  }
  bool isTransposed = value.dims.size() != expectedValue.dims.size();
  for (auto [dim, other] : llvm::zip(value.dims, expectedValue.dims)) {
    isTransposed |= dim.ofTerm != other.ofTerm;
  }
  if (isTransposed) {
    return report(given, given.op->getLoc(), "its dimensions are in another order");
  }
  if (std::optional<std::string> wrong = misplaced(given, value, expectedValue.term)) {
    return report(given, given.op->getLoc(), *wrong);
  }
  return success();
}

void Comparison::runWhole(func::FuncOp root) {
  for (const Given &given : Interpreter(whole, expected).run(root)) {
    before[root][given.name].push_back(given.value);
  }
}

LogicalResult Comparison::compare(func::FuncOp root, func::FuncOp other) {
  std::map<std::string, size_t> seen;
  for (const Given &given : Interpreter(parallel, got).run(other)) {
    auto found = before[root].find(given.name);
    if (found == before[root].end()) {
      return report(given, given.op->getLoc(), "the program before Plan gives no such value");
    }
    // Each micro-batch observes its own.
    size_t number = seen[given.name]++ % found->second.size();
    if (failed(compare(given, expected[found->second[number]]))) {
      return failure();
    }
  }
  for (const auto &[name, values] : before[root]) {
    if (seen[name] == 0 || seen[name] % values.size() != 0) {
      return other.emitError("prove-meaning: '")
             << name << "' is given " << seen[name] << " times, expected " << values.size();
    }
  }
  return success();
}

LogicalResult Comparison::run() {
  SymbolTable functions(parallel);
  SmallVector<func::FuncOp> roots;
  for (auto function : whole.getOps<func::FuncOp>()) {
    if (!function.isPrivate()) {
      roots.push_back(function);
      runWhole(function);
    }
  }
  terms.endWhole();
  for (func::FuncOp root : roots) {
    auto other = functions.lookup<func::FuncOp>(root.getSymName());
    if (!other) {
      return parallel.emitError("prove-meaning: expected a function '")
             << root.getSymName() << "', as the program before Plan has";
    }
    if (failed(compare(root, other))) {
      return failure();
    }
  }
  return success();
}

} // namespace
} // namespace meaning

LogicalResult proveMeaning(ModuleOp whole, ModuleOp parallel) {
  return meaning::Comparison(whole, parallel).run();
}

} // namespace weft
