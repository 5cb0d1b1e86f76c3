//===- Placement.cpp - how assigned values get where they belong ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Placement.h"

#include "llvm/ADT/DenseSet.h"

#include <map>

using namespace mlir;
using namespace weft;

namespace {

/// The number of each variable's old value in the section, or -1 if it is not read.
std::vector<int64_t> findOldValues(const FlatSection &section) {
  std::vector<int64_t> oldValues;
  auto makeRoom = [&](size_t variable) {
    oldValues.resize(std::max(oldValues.size(), variable + 1), -1);
  };
  for (const FlatAssign &assign : section.assigns) {
    makeRoom(assign.variable);
  }
  for (auto [number, value] : llvm::enumerate(section.values)) {
    if (value.variable >= 0) {
      makeRoom(value.variable);
      oldValues[value.variable] = number;
    }
  }
  return oldValues;
}

/// The operand of a map that has the given number, provided that it is the only one, of the
/// result's type, and read at the point that is computed; or -1.
int64_t findTieable(const FlatSection &section, const FlatOp &flatOp, uint32_t result,
                    int64_t oldValue) {
  auto map = dyn_cast<MapOp>(flatOp.op);
  ArrayRef<uint32_t> operands = section.operandsOf(flatOp);
  if (!map || llvm::count(operands, oldValue) != 1) {
    return -1;
  }
  int64_t operand = llvm::find(operands, oldValue) - operands.begin();
  bool isSame = section.values[oldValue].type == section.values[result].type &&
                cast<AffineMapAttr>(map.getMaps()[operand]).getValue().isIdentity();
  return isSame ? operand : -1;
}

/// What operand the result of an op takes over, by `ties` or by what a launch says.
int64_t findTied(const FlatOp &flatOp, size_t position, const Ties &ties) {
  if (auto launch = dyn_cast<LaunchOp>(flatOp.op)) {
    return launch.getTied()[position];
  }
  auto it = ties.find(flatOp.op);
  return it == ties.end() ? -1 : it->second[position];
}

} // namespace

std::vector<Placing> weft::placeAssignments(const FlatSection &section, const Ties &ties) {
  std::vector<int64_t> oldValues = findOldValues(section);
  llvm::DenseSet<uint32_t> placed;
  std::vector<Placing> placings;
  for (const FlatAssign &assign : section.assigns) {
    const FlatValue &value = section.values[assign.value];
    int64_t oldValue = oldValues[assign.variable];
    int32_t lastRead = oldValue < 0 ? -1 : section.values[oldValue].lastRead;
    Placing placing = Placing::Copy;
    if (value.variable >= 0) {
      placing = value.variable == static_cast<int32_t>(assign.variable) ? Placing::Kept
                                                                         : Placing::Copy;
    } else if (value.definedAt >= 0 && !placed.contains(assign.value)) {
      const FlatOp &definedBy = section.ops[value.definedAt];
      size_t position =
          llvm::find(section.resultsOf(definedBy), assign.value) -
          section.resultsOf(definedBy).begin();
      int64_t tied = findTied(definedBy, position, ties);
      if (tied >= 0 && section.operandsOf(definedBy)[tied] == oldValue) {
        placing = lastRead == value.definedAt ? Placing::Tied : Placing::Copy;
      } else if (tied < 0 && lastRead < value.definedAt) {
        placing = Placing::Direct;
      }
    }
    if (placing == Placing::Direct || placing == Placing::Tied) {
      placed.insert(assign.value);
    }
    placings.push_back(placing);
  }
  return placings;
}

Ties weft::decideTies(ArrayRef<FlatSection> sections) {
  // How often an op is used, and how often each (result, operand) of it could be tied.
  llvm::DenseMap<Operation *, unsigned> uses;
  llvm::MapVector<Operation *, std::map<std::pair<size_t, int64_t>, unsigned>> candidates;
  for (const FlatSection &section : sections) {
    for (const FlatOp &op : section.ops) {
      ++uses[op.op];
    }
    std::vector<int64_t> oldValues = findOldValues(section);
    for (const FlatAssign &assign : section.assigns) {
      const FlatValue &value = section.values[assign.value];
      int64_t oldValue = oldValues[assign.variable];
      if (value.definedAt < 0 || oldValue < 0 ||
          section.values[oldValue].lastRead != value.definedAt) {
        continue;
      }
      const FlatOp &definedBy = section.ops[value.definedAt];
      int64_t operand = findTieable(section, definedBy, assign.value, oldValue);
      if (operand >= 0) {
        ArrayRef<uint32_t> results = section.resultsOf(definedBy);
        size_t position = llvm::find(results, assign.value) - results.begin();
        ++candidates[definedBy.op][{position, operand}];
      }
    }
  }
  Ties ties;
  for (auto &[op, counts] : candidates) {
    for (auto [pair, count] : counts) {
      if (count == uses[op]) {
        auto &tied = ties.try_emplace(op, op->getNumResults(), -1).first->second;
        tied[pair.first] = pair.second;
      }
    }
  }
  return ties;
}

FailureOr<SmallVector<FlatSection, 2>>
weft::linearizeSections(ModuleOp module, const ModuleSymbols &symbols) {
  SmallVector<FlatSection, 2> sections;
  for (StringRef name : {"init", "step"}) {
    func::FuncOp function =
        symbols.functions.lookup(StringAttr::get(module.getContext(), name));
    if (!function || function.getNumArguments() != 0 || function.getNumResults() != 0) {
      return emitError(module.getLoc()) << "expected a function @" << name
                                << " that takes and gives nothing";
    }
    FailureOr<FlatSection> section = linearize(function, symbols);
    if (failed(section)) {
      return failure();
    }
    sections.push_back(std::move(*section));
  }
  return sections;
}
