//===- OpOptions.cpp - every way in which an op can be sharded ------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OpOptions.h"

#include "weft/Dialect/Weft/IR/AttributeNames.h"
#include "weft/Pipeline/ReshardProblem.h"

using namespace mlir;

namespace weft {
namespace {

/// An axis does one thing, as a number: 0 nothing, 1 to F cuts that factor, beyond carries a
/// pending sum through one set of operands. To cut a permutation is to cut its partner too.
class Enumeration {
public:
  Enumeration(ShardableOpInterface op, LayoutSpaces &spaces)
      : op(op), spaces(spaces), mesh(spaces.getMesh()), rule(op.getFactorRule()),
        parts(rule.factors.size(), 1), does(mesh.getSizes().size(), 0) {
    findAdditiveOperands();
    findPins();
    for (auto [number, type] : llvm::enumerate(op->getOperandTypes())) {
      operands.push_back(digitsOf(type, rule.operands[number], number));
    }
    for (auto [number, type] : llvm::enumerate(op->getResultTypes())) {
      results.push_back(digitsOf(type, rule.results[number], std::nullopt));
    }
  }

  std::vector<OpOption> run() {
    assign(0);
    return std::move(options);
  }

private:
  /// The digit of a value's layout for each thing that an axis can do; nothing for no tensor.
  struct Digits {
    planner::LayoutSpace *space = nullptr;
    SmallVector<uint32_t> of;
    bool canPend = false;
  };

  /// The sets of operands that may be pending together: each by itself, and all.
  void findAdditiveOperands() {
    bool joinsBySum = llvm::all_of(rule.reductions,
                                   [](ReductionKind kind) { return kind == ReductionKind::Sum; });
    if (!joinsBySum || !llvm::all_of(op->getResultTypes(), canPend)) {
      return;
    }
    SmallVector<unsigned> all;
    for (auto [number, type] : llvm::enumerate(op->getOperandTypes())) {
      if (canPend(type)) {
        all.push_back(number);
        if (op.isAdditiveIn({unsigned(number)})) {
          additive.push_back({unsigned(number)});
        }
      }
    }
    if (all.size() > 1 && op.isAdditiveIn(all)) {
      additive.push_back(all);
    }
  }

  void findPins() {
    pinnedTo.assign(does.size(), std::nullopt);
    isPinned.assign(rule.factors.size(), false);
    auto pins = op->getAttrOfType<ArrayAttr>(kPinsAttrName);
    for (size_t factor = 0; pins && factor < rule.factors.size(); ++factor) {
      if (auto axes = dyn_cast<ArrayAttr>(pins[factor])) {
        isPinned[factor] = true;
        for (uint32_t axis : toAxes(mesh, axes)) {
          pinnedTo[axis] = factor;
        }
      }
    }
  }

  Digits digitsOf(Type type, ArrayRef<unsigned> dims, std::optional<unsigned> operand) {
    Digits digits;
    if (!isa<RankedTensorType>(type)) {
      return digits;
    }
    digits.space = &spaces.of(type);
    digits.canPend = canPend(type);
    uint32_t pending = digits.space->digits() - 1;
    digits.of.push_back(0);
    for (auto [number, factor] : llvm::enumerate(rule.factors)) {
      auto found = llvm::find(dims, number);
      bool isPermutation = factor.kind == FactorKind::Permutation;
      if (found == dims.end() && isPermutation) {
        found = llvm::find(dims, factor.partner);
      }
      // A result without the factor has one term of it on each rank, unless pieces go round.
      uint32_t missing = operand || isPermutation ? 0 : pending;
      digits.of.push_back(found == dims.end() ? missing : uint32_t(found - dims.begin()) + 1);
    }
    for (const SmallVector<unsigned> &together : additive) {
      bool carries = !operand || llvm::is_contained(together, *operand);
      digits.of.push_back(carries ? pending : 0);
    }
    return digits;
  }

  void assign(size_t axis) {
    if (axis == does.size()) {
      return finish();
    }
    if (!pinnedTo[axis]) {
      does[axis] = 0;
      assign(axis + 1);
    }
    int64_t ranks = mesh.getSizes()[axis];
    for (auto [number, factor] : llvm::enumerate(rule.factors)) {
      if (factor.kind == FactorKind::MustReplicate || !isAllowed(axis, number)) {
        continue;
      }
      bool isPermutation = factor.kind == FactorKind::Permutation;
      SmallVector<size_t, 2> cut = {number};
      if (isPermutation) {
        cut.push_back(factor.partner);
      }
      for (size_t each : cut) {
        parts[each] *= ranks;
      }
      if (llvm::all_of(cut,
                       [&](size_t each) { return rule.factors[each].size % parts[each] == 0; })) {
        does[axis] = uint32_t(number) + 1;
        assign(axis + 1);
      }
      for (size_t each : cut) {
        parts[each] /= ranks;
      }
    }
    for (size_t set = 0; set < additive.size(); ++set) {
      does[axis] = uint32_t(rule.factors.size() + 1 + set);
      assign(axis + 1);
    }
  }

  /// What pins leave: a permutation may also go with its partner, where it is not pinned itself.
  bool isAllowed(size_t axis, size_t number) const {
    const Factor &factor = rule.factors[number];
    if (!pinnedTo[axis]) {
      return !isPinned[number] &&
             (factor.kind != FactorKind::Permutation || !isPinned[factor.partner]);
    }
    return *pinnedTo[axis] == number || (factor.kind == FactorKind::Permutation &&
                                         *pinnedTo[axis] == factor.partner && !isPinned[number]);
  }

  uint32_t layoutOf(const Digits &digits) const {
    if (!digits.space) {
      return 0;
    }
    auto layout = llvm::map_to_vector(does, [&](uint32_t thing) { return digits.of[thing]; });
    return digits.space->numberOf(std::vector<uint32_t>(layout.begin(), layout.end()));
  }

  void finish() {
    OpOption option;
    for (const Digits &digits : results) {
      option.results.push_back(layoutOf(digits));
      if (digits.space && !digits.canPend && digits.space->isPending(option.results.back())) {
        return;
      }
    }
    for (const Digits &digits : operands) {
      option.operands.push_back(layoutOf(digits));
    }
    option.parts.assign(parts.begin(), parts.end());
    if (auto permuted = findPermutation(rule)) {
      option.parts[*permuted] = 1; // Its axes are its partner's.
    }
    option.name = describe();
    options.push_back(std::move(option));
  }

  std::string describe() const {
    std::string text;
    for (auto [axis, thing] : llvm::enumerate(does)) {
      text += (text.empty() ? "" : " ") + mesh.getNames()[axis].str() + ":";
      if (thing == 0) {
        text += '-';
      } else if (thing <= rule.factors.size()) {
        if (rule.factors[thing - 1].kind == FactorKind::Permutation) {
          text += char('a' + rule.factors[thing - 1].partner);
        }
        text += char('a' + thing - 1);
      } else {
        text += "pending";
        for (unsigned operand : additive[thing - 1 - rule.factors.size()]) {
          text += '#' + std::to_string(operand);
        }
      }
    }
    return text;
  }

  ShardableOpInterface op;
  LayoutSpaces &spaces;
  const MeshAttr mesh;
  const FactorRule rule;
  SmallVector<SmallVector<unsigned>> additive;
  /// The factor that an axis is pinned to. What is pending is not whole, so it may be pending too.
  SmallVector<std::optional<size_t>> pinnedTo;
  SmallVector<bool> isPinned;
  SmallVector<Digits> operands, results;
  SmallVector<int64_t> parts;
  SmallVector<uint32_t> does;
  std::vector<OpOption> options;
};

} // namespace

std::vector<OpOption> enumerateOptions(ShardableOpInterface op, LayoutSpaces &spaces) {
  return Enumeration(op, spaces).run();
}

std::vector<uint32_t> enumerateLayouts(RankedTensorType type, LayoutSpaces &spaces, bool pending) {
  const planner::LayoutSpace &space = spaces.of(type);
  std::vector<uint32_t> layouts;
  for (uint32_t number = 0; number < space.inOrder(); ++number) {
    bool allowed = !space.isPending(number) || (pending && canPend(type));
    if (allowed && space.divides(number, type.getShape().vec())) {
      layouts.push_back(number);
    }
  }
  return layouts;
}

} // namespace weft
