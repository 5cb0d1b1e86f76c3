//===- Placement.cpp - places of assigned values --------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Placement.h"

#include "OpKinds.h"
#include "weft/Pipeline/Lower/HostLowering.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"

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

/// Returns the operand whose storage a result of the op takes over, by `ties` or by the launch.
int64_t findTied(const FlatOp &flatOp, size_t position, const Ties &ties) {
  if (auto launch = dyn_cast<LaunchOp>(flatOp.op)) {
    return launch.getTied()[position];
  }
  auto it = ties.find(flatOp.op);
  return it == ties.end() ? inPlaceOperand(flatOp.op, position) : it->second[position];
}

/// Returns how the value `after`, if an op computes it, gets into the place of `before`, which is
/// -1 if nothing reads it.
Placing placeInstead(const FlatSection &section, int64_t before, uint32_t after, const Ties &ties) {
  const FlatValue &value = section.values[after];
  if (value.definedAt < 0) {
    return Placing::Copy;
  }
  int32_t lastRead = before < 0 ? -1 : section.values[before].lastRead;
  const FlatOp &definedBy = section.ops[value.definedAt];
  ArrayRef<uint32_t> results = section.resultsOf(definedBy);
  size_t position = llvm::find(results, after) - results.begin();
  int64_t tied = findTied(definedBy, position, ties);
  if (tied >= 0 && section.operandsOf(definedBy)[tied] == before) {
    return lastRead == value.definedAt ? Placing::Tied : Placing::Copy;
  }
  bool takesAnother = tied >= 0 && inPlaceOperand(definedBy.op, position) < 0;
  return !takesAnother && lastRead < value.definedAt ? Placing::Direct : Placing::Copy;
}

} // namespace

int64_t weft::inPlaceOperand(Operation *op, size_t result) {
  if (isa<AllReduceOp>(op)) {
    return 0;
  }
  auto matmul = dyn_cast<MatmulOp>(op);
  if (!matmul || result != 0 || !matmul.getAddend()) {
    return -1;
  }
  return matmul.getAddendMutable().begin()->getOperandNumber();
}

std::vector<Placing> weft::placeAssignments(const FlatSection &section, const Ties &ties) {
  std::vector<int64_t> oldValues = findOldValues(section);
  llvm::DenseSet<uint32_t> placed;
  for (const FlatCarry &carry : section.carries) {
    placed.insert(carry.after);
  }
  std::vector<Placing> placings;
  for (const FlatAssign &assign : section.assigns) {
    const FlatValue &value = section.values[assign.value];
    Placing placing = Placing::Copy;
    if (value.variable >= 0) {
      placing =
          value.variable == static_cast<int32_t>(assign.variable) ? Placing::Kept : Placing::Copy;
    } else if (!placed.contains(assign.value) && value.definedAt > section.agreedAt) {
      placing = placeInstead(section, oldValues[assign.variable], assign.value, ties);
    }
    if (placing == Placing::Direct || placing == Placing::Tied) {
      placed.insert(assign.value);
    }
    placings.push_back(placing);
  }
  return placings;
}

std::vector<Placing> weft::placeCarries(const FlatSection &section, const Ties &ties) {
  llvm::DenseSet<uint32_t> placed;
  std::vector<Placing> placings;
  for (const FlatCarry &carry : section.carries) {
    Placing placing = Placing::Copy;
    if (carry.after == carry.before) {
      placing = Placing::Kept;
    } else if (section.values[carry.after].definedAt >= section.repeat->bodies[carry.body].begin &&
               placed.insert(carry.after).second) {
      placing = placeInstead(section, carry.before, carry.after, ties);
    }
    placings.push_back(placing);
  }
  return placings;
}

namespace {

/// Returns true if the kernel of `op` may write a result into the storage of an operand. For a map
/// that follows from its semantics; for other ops their lowering decides.
bool mayReuse(Operation *op, unsigned operand, unsigned result) {
  if (op->getOperand(operand).getType() != op->getResult(result).getType()) {
    return false;
  }
  if (auto map = dyn_cast<MapOp>(op)) {
    return cast<AffineMapAttr>(map.getMaps()[operand]).getValue().isIdentity();
  }
  auto lowering = dyn_cast<HostLoweringOpInterface>(op);
  return lowering && lowering.mayReuse(operand, result);
}

/// How often each (result, operand) of an op could be tied.
using TieCounts = std::map<std::pair<unsigned, unsigned>, unsigned>;

/// Counts, over all uses of each op in a section, which results could take over which operands.
class TieCounter {
public:
  explicit TieCounter(const FlatSection &section)
      : section(section), isAssigned(section.values.size(), false) {
    for (const FlatAssign &assign : section.assigns) {
      isAssigned[assign.value] = true;
      newValues[assign.variable] = assign.value;
    }
    for (const FlatCarry &carry : section.carries) {
      passedOn.try_emplace(carry.after, section.repeat->end);
      next[carry.before] = carry.after;
    }
  }

  void count(const FlatOp &op, int32_t time, TieCounts &counts) const {
    ArrayRef<uint32_t> operands = section.operandsOf(op);
    for (auto [position, result] : llvm::enumerate(section.resultsOf(op))) {
      for (auto [number, operand] : llvm::enumerate(operands)) {
        if (mayReuse(op.op, number, position) && llvm::count(operands, operand) == 1 &&
            mayTakeOver(result, operand, time)) {
          ++counts[{position, number}];
        }
      }
    }
  }

private:
  /// Returns true if `operand` is not read after `time`, and `result` belongs in its storage.
  bool mayTakeOver(uint32_t result, uint32_t operand, int32_t time) const {
    auto until = passedOn.find(operand);
    if (!section.values[operand].endsAt(time) || isAssigned[operand] ||
        (until != passedOn.end() && time < until->second)) {
      return false;
    }
    if (auto it = next.find(operand); it != next.end()) {
      return it->second == result;
    }
    if (passedOn.contains(result)) {
      return false;
    }
    int32_t variable = section.values[operand].variable;
    if (variable < 0) {
      return !isAssigned[result];
    }
    auto newValue = newValues.find(variable);
    return time > section.agreedAt && newValue != newValues.end() && newValue->second == result;
  }

  const FlatSection &section;
  std::vector<bool> isAssigned;
  /// The value that each assigned variable gets.
  llvm::DenseMap<uint32_t, uint32_t> newValues;
  /// What calls of a repeat pass on, and the ends of their repeats.
  llvm::DenseMap<uint32_t, int32_t> passedOn;
  /// What such calls get, and what the next one gets instead.
  llvm::DenseMap<uint32_t, uint32_t> next;
};

} // namespace

Ties weft::decideTies(ArrayRef<FlatSection> sections) {
  llvm::MapVector<Operation *, std::pair<unsigned, TieCounts>> ops;
  for (const FlatSection &section : sections) {
    TieCounter counter(section);
    for (auto [time, op] : llvm::enumerate(section.ops)) {
      if (isKernelWork(op.op)) {
        auto &[uses, counts] = ops[op.op];
        ++uses;
        counter.count(op, time, counts);
      }
    }
  }
  Ties ties;
  for (auto &[op, usesAndCounts] : ops) {
    auto &[uses, counts] = usesAndCounts;
    for (auto [pair, count] : counts) {
      auto [result, operand] = pair;
      if (count != uses) {
        continue;
      }
      auto &tied = ties.try_emplace(op, op->getNumResults(), -1).first->second;
      if (tied[result] < 0 && !llvm::is_contained(tied, operand)) {
        tied[result] = operand;
      }
    }
  }
  return ties;
}

FailureOr<SmallVector<FlatSection, 3>> weft::linearizeSections(ModuleOp module,
                                                               const ModuleSymbols &symbols) {
  SmallVector<FlatSection, 3> sections;
  for (StringRef name : {"init", "step", "evaluate"}) {
    func::FuncOp function = symbols.functions.lookup(StringAttr::get(module.getContext(), name));
    if (!function && name == "evaluate") {
      continue; // A module by hand need not have it.
    }
    if (!function || function.getNumArguments() != 0 || function.getNumResults() != 0) {
      return emitError(module.getLoc())
             << "expected a function @" << name << " without arguments and results";
    }
    FailureOr<FlatSection> section = linearize(function, symbols);
    if (failed(section)) {
      return failure();
    }
    sections.push_back(std::move(*section));
  }
  return sections;
}
