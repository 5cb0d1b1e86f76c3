//===- ProveTable.cpp - the instruction tables compute what Partition left ----===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Meaning/ProveTable.h"

#include "ProveFunctions.h"
#include "TableWalk.h"

#include "weft/Dialect/Weft/IR/AttributeNames.h"
#include "weft/Dialect/Weft/IR/Sharding.h"

using namespace mlir;

namespace weft {
namespace meaning {
namespace {

/// Runs the tables of all rank classes together.
class TableComparison {
public:
  TableComparison(ModuleOp local, ArrayRef<ModuleOp> scheduled, ArrayRef<rt::Program> programs)
      : local(local), ops(arrays, local->getAttrOfType<MeshAttr>(kMeshAttrName)), shared(ops),
        expected(local, ops) {
    for (auto [module, program] : llvm::zip_equal(scheduled, programs)) {
      walks.emplace_back(module, program, shared, local.getLoc());
    }
  }

  LogicalResult run();

private:
  struct Section {
    StringRef name;
    std::vector<rt::Action> rt::Program::*actions;
  };

  LogicalResult compare(const Section &section, const SectionResult &wanted);
  LogicalResult goThrough(const Section &section);
  LogicalResult compareObserved(const Section &section, const SectionResult &wanted);
  LogicalResult compareVariables(const Section &section, const SectionResult &wanted);
  int64_t countOfVariable(StringRef name) {
    return countOf(getLocalType(expected.variable(name).getTensorType()));
  }
  /// The first instruction, on the way to `array`, that computes something that is not expected of
  /// what is.
  const Origin *firstOther(ArrayId array) const;
  /// " in rank class 1", if there are several.
  std::string inClass(const TableWalk &walk) const;
  LogicalResult report(const Twine &value, ArrayId got);

  ModuleOp local;
  Arrays arrays;
  LocalOps ops;
  SharedWalk shared;
  LocalModule expected;
  std::deque<TableWalk> walks;
};

const Origin *TableComparison::firstOther(ArrayId array) const {
  const Origin *found = nullptr;
  for (bool isDone = false; !isDone;) {
    auto origin = shared.origins.find(array);
    if (origin == shared.origins.end()) {
      break;
    }
    found = &origin->second;
    isDone = true;
    for (ArrayId operand : origin->second.operands) {
      if (!ops.isExpected(operand) && operand < array) {
        array = operand;
        isDone = false;
        break;
      }
    }
  }
  return found;
}

std::string TableComparison::inClass(const TableWalk &walk) const {
  return walks.size() > 1 ? " in rank class " + std::to_string(walk.getProgram().rankClass) : "";
}

LogicalResult TableComparison::report(const Twine &value, ArrayId wrong) {
  const Origin *origin = firstOther(wrong);
  InFlightDiagnostic error = emitError(local.getLoc(), "prove-meaning: ") << value;
  error << " is not what the module after Partition says";
  if (origin) {
    error << "; the first instruction that computes something else is " << origin->describe();
  }
  return error;
}

LogicalResult TableComparison::goThrough(const Section &section) {
  shared.transfers = {};
  for (TableWalk &walk : walks) {
    walk.begin(walk.getProgram().*section.actions,
               [&](StringRef name) { return countOfVariable(name); });
  }
  bool isOk = true;
  goTogether(walks, [&](TableWalk &walk) {
    bool moves = false;
    isOk = isOk && succeeded(walk.advance(moves));
    return isOk && moves;
  });
  if (!isOk) {
    return failure();
  }
  for (TableWalk &walk : walks) {
    if (!walk.isAtEnd()) {
      return walk.reportWaiting();
    }
  }
  if (std::optional<Route> left = shared.transfers.findLeft()) {
    return emitError(local.getLoc(), "prove-meaning: in ")
           << section.name << ", rank class " << left->to << " does not receive transfer number "
           << left->number << " of rank class " << left->from;
  }
  return success();
}

/// Several classes may observe a value; each must see all of it.
LogicalResult TableComparison::compareObserved(const Section &section,
                                               const SectionResult &wanted) {
  std::set<StringRef> seen;
  for (const TableWalk &walk : walks) {
    for (const auto &[name, own] : walk.observed()) {
      auto values = wanted.observed.find(name);
      if (values == wanted.observed.end()) {
        return emitError(local.getLoc(), "prove-meaning: ")
               << section.name << " observes '" << name
               << "', which the module after Partition does not";
      }
      seen.insert(name);
      auto other =
          std::mismatch(values->second.begin(), values->second.end(), own.begin(), own.end());
      if (other.first != values->second.end() || other.second != own.end()) {
        return report("the observed value '" + name + "' of " + section.name + inClass(walk),
                      other.second != own.end() ? *other.second : 0);
      }
    }
  }
  for (const auto &[name, values] : wanted.observed) {
    if (!seen.contains(name)) {
      return emitError(local.getLoc(), "prove-meaning: ")
             << section.name << " does not observe '" << name << "'";
    }
  }
  return success();
}

LogicalResult TableComparison::compareVariables(const Section &section,
                                                const SectionResult &wanted) {
  for (const TableWalk &walk : walks) {
    const rt::Program &program = walk.getProgram();
    for (const auto *list : {&program.parameters, &program.optimizerState, &program.inputs}) {
      for (const rt::NamedTensor &tensor : *list) {
        auto assigned = wanted.variables.find(tensor.name);
        ArrayId value = assigned != wanted.variables.end()
                            ? assigned->second
                            : ops.variable(tensor.name, countOfVariable(tensor.name)).array;
        if (walk.heldBy(tensor) != value) {
          return report("the value of '" + tensor.name + "' after " + section.name + inClass(walk),
                        walk.heldBy(tensor));
        }
      }
    }
  }
  return success();
}

LogicalResult TableComparison::compare(const Section &section, const SectionResult &wanted) {
  return success(succeeded(goThrough(section)) && succeeded(compareObserved(section, wanted)) &&
                 succeeded(compareVariables(section, wanted)));
}

LogicalResult TableComparison::run() {
  const Section sections[] = {{"init", &rt::Program::init},
                              {"step", &rt::Program::step},
                              {"evaluate", &rt::Program::evaluate}};
  std::vector<SectionResult> results;
  for (const Section &section : sections) {
    func::FuncOp function = expected.lookup(section.name);
    results.push_back(function ? expected.run(function) : SectionResult());
  }
  ops.endExpected();
  for (auto [section, result] : llvm::zip_equal(sections, results)) {
    if (failed(compare(section, result))) {
      return failure();
    }
  }
  return success();
}

//===----------------------------------------------------------------------===//
// What the programs hold
//===----------------------------------------------------------------------===//

bool isLayout(const rt::TensorLayout &layout, MeshAttr mesh, VariableOp variable) {
  RankedTensorType type = variable.getTensorType();
  ShardingAttr sharding = getSharding(type);
  if (!sharding || layout.dimAxes.size() != sharding.getDims().size() ||
      ArrayRef(layout.cutShape()) != type.getShape() ||
      ArrayRef(layout.globalShape) != variable.getUnpadded().value_or(type.getShape())) {
    return false;
  }
  for (auto [numbers, axes] : llvm::zip_equal(layout.dimAxes, sharding.getDims())) {
    if (numbers.size() != axes.size()) {
      return false;
    }
    for (auto [number, axis] : llvm::zip_equal(numbers, axes.getAsRange<StringAttr>())) {
      if (mesh.getNames()[number] != axis) {
        return false;
      }
    }
  }
  return true;
}

LogicalResult compareVariables(ModuleOp local, const rt::Program &program) {
  auto mesh = local->getAttrOfType<MeshAttr>(kMeshAttrName);
  bool isMesh =
      llvm::equal(program.mesh, llvm::zip_equal(mesh.getNames(), mesh.getSizes()),
                  [](const rt::Axis &own, auto axis) {
                    return own.name == std::get<0>(axis).strref() && own.size == std::get<1>(axis);
                  });
  if (!isMesh) {
    return emitError(local.getLoc(), "prove-meaning: the program of rank class ")
           << program.rankClass << " is for another mesh than the module after Partition";
  }
  SymbolTable symbols(local);
  for (const auto *list : {&program.parameters, &program.optimizerState, &program.inputs}) {
    for (const rt::NamedTensor &tensor : *list) {
      auto variable = symbols.lookup<VariableOp>(tensor.name);
      bool isInput = list == &program.inputs;
      if (!variable || isInput != (variable.getRole() == VariableRole::Input) ||
          !isLayout(tensor.layout, mesh, variable)) {
        return emitError(local.getLoc(), "prove-meaning: the program has '")
               << tensor.name << "' in another layout or role than the module after Partition";
      }
    }
  }
  return success();
}

/// What a run keeps is kept by the ranks of one class; all may read an input.
LogicalResult compareOwners(ModuleOp local, ArrayRef<rt::Program> programs) {
  std::map<StringRef, uint32_t> owners;
  for (const rt::Program &program : programs) {
    for (const auto *list : {&program.parameters, &program.optimizerState}) {
      for (const rt::NamedTensor &tensor : *list) {
        auto [owner, isNew] = owners.try_emplace(tensor.name, program.rankClass);
        if (!isNew) {
          return emitError(local.getLoc(), "prove-meaning: rank classes ")
                 << owner->second << " and " << program.rankClass << " both have '" << tensor.name
                 << "'";
        }
      }
    }
  }
  for (auto variable : local.getOps<VariableOp>()) {
    if (variable.getRole() != VariableRole::Input && !owners.contains(variable.getSymName())) {
      return emitError(local.getLoc(), "prove-meaning: no program has '")
             << variable.getSymName() << "'";
    }
  }
  return success();
}

LogicalResult comparePrograms(ModuleOp local, ArrayRef<rt::Program> programs) {
  for (auto [number, program] : llvm::enumerate(programs)) {
    if (program.rankClass != number) {
      return emitError(local.getLoc(), "prove-meaning: expected the program of rank class ")
             << number << ", got that of " << program.rankClass;
    }
    if (failed(compareVariables(local, program))) {
      return failure();
    }
  }
  return compareOwners(local, programs);
}

} // namespace
} // namespace meaning

LogicalResult proveTable(ModuleOp local, ArrayRef<ModuleOp> scheduled,
                         ArrayRef<rt::Program> programs) {
  if (failed(meaning::comparePrograms(local, programs))) {
    return failure();
  }
  if (meaning::proveFunctions(local, scheduled, programs)) {
    return success();
  }
  // Instruction by instruction, across functions; this also says where the fault is.
  return meaning::TableComparison(local, scheduled, programs).run();
}

} // namespace weft
