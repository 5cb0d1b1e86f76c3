//===- OpOptions.cpp - every way in which an op can be sharded ------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OpOptions.h"

#include "weft/Dialect/Weft/IR/AttributeNames.h"
#include "weft/Dialect/Weft/IR/RuleMutation.h"
#include "weft/Pipeline/ReshardProblem.h"

using namespace mlir;

namespace weft {
namespace {

/// One assignment of an axis: it cuts a factor, and with it the permuted factor whose partner that
/// is, or carries a pending sum through some operands, or does nothing.
struct AxisAssignment {
  SmallVector<unsigned, 2> cuts;
  SmallVector<unsigned> pending;
  std::string name;
};

class Enumeration {
public:
  Enumeration(ShardableOpInterface op, LayoutSpaces &spaces, bool heedsPins)
      : op(op), spaces(spaces), mesh(spaces.getMesh()), rule(op.getFactorRule()),
        parts(rule.factors.size(), 1), does(mesh.getSizes().size(), 0),
        pins(rule.factors.size(), std::nullopt) {
    findThings();
    if (auto given = op->getAttrOfType<ArrayAttr>(kPinsAttrName); given && heedsPins) {
      findPins(given);
    }
    for (auto [number, type] : llvm::enumerate(op->getOperandTypes())) {
      operands.push_back(digitsOf(type, rule.operands[number], number));
    }
    for (auto [number, type] : llvm::enumerate(op->getResultTypes())) {
      results.push_back(digitsOf(type, rule.results[number], std::nullopt));
    }
  }

  std::vector<OpOption> run() {
    assign(0);
    if (!spaces.areAllSearched() && !cutsAsPinned) {
      freesPinned = true; // All cuts that pins ask for have too many runs.
      options.clear();
      assign(0);
    }
    return std::move(options);
  }

private:
  /// The digit of a value's layout for each assignment; nothing if the value is no tensor.
  struct Digits {
    planner::LayoutSpace *space = nullptr;
    ArrayRef<unsigned> dims;
    SmallVector<uint32_t> of;
    bool canPend = false;
  };

  void findThings() {
    assignments.push_back({{}, {}, "-"});
    std::optional<unsigned> permuted = findPermutation(rule);
    for (auto [number, factor] : llvm::enumerate(rule.factors)) {
      if (factor.kind == FactorKind::MustReplicate || factor.kind == FactorKind::Permutation) {
        continue;
      }
      unsigned cut = unsigned(number);
      std::string name(1, char('a' + number));
      assignments.push_back({{cut}, {}, name});
      if (permuted && rule.factors[*permuted].partner == cut) {
        assignments.push_back({{cut, *permuted}, {}, name + char('a' + *permuted)});
      }
    }
    findAdditiveOperands();
  }

  /// Returns the sets of operands that may be pending together: each by itself, and all.
  void findAdditiveOperands() {
    bool joinsBySum = llvm::all_of(rule.reductions,
                                   [](ReductionKind kind) { return kind == ReductionKind::Sum; });
    if (!joinsBySum || !llvm::all_of(op->getResultTypes(), canPend)) {
      return;
    }
    auto add = [&](ArrayRef<unsigned> together) {
      if (isAdditive(op, together)) {
        std::string name = "pending";
        for (unsigned operand : together) {
          name += '#' + std::to_string(operand);
        }
        assignments.push_back({{}, SmallVector<unsigned>(together), name});
      }
    };
    SmallVector<unsigned> all;
    for (auto [number, type] : llvm::enumerate(op->getOperandTypes())) {
      if (canPend(type)) {
        all.push_back(number);
        add({unsigned(number)});
      }
    }
    if (all.size() > 1) {
      add(all);
    }
  }

  void findPins(ArrayAttr given) {
    for (size_t factor = 0; factor < rule.factors.size(); ++factor) {
      if (auto axes = dyn_cast<ArrayAttr>(given[factor])) {
        pins[factor] = toAxes(mesh, axes);
        llvm::append_range(pinnedAxes, *pins[factor]);
        isInOtherOrder |= !llvm::is_sorted(*pins[factor]);
      }
    }
    if (given.size() > rule.factors.size()) {
      findPinnedTerms(cast<DictionaryAttr>(given[rule.factors.size()]));
    }
  }

  /// Reads the pins of terms; ignores those of terms that the op cannot have.
  void findPinnedTerms(DictionaryAttr given) {
    pinnedTerms.assign(mesh.getSizes().size(), SmallVector<unsigned>());
    for (NamedAttribute entry : given) {
      SmallVector<unsigned> operands;
      unsigned number = 0;
      if (!entry.getName().getValue().getAsInteger(10, number)) {
        operands.push_back(number);
      } else {
        for (auto [operand, type] : llvm::enumerate(op->getOperandTypes())) {
          if (canPend(type)) {
            operands.push_back(unsigned(operand));
          }
        }
      }
      if (llvm::any_of(assignments, [&](const AxisAssignment &assignment) {
            return assignment.pending == operands;
          })) {
        for (uint32_t axis : toAxes(mesh, cast<ArrayAttr>(entry.getValue()))) {
          pinnedTerms[axis] = operands;
          pinnedAxes.push_back(axis);
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
    digits.dims = dims;
    digits.canPend = canPend(type);
    uint32_t pending = digits.space->digits() - 1;
    for (const AxisAssignment &assignment : assignments) {
      auto found = llvm::find_if(
          dims, [&](unsigned factor) { return llvm::is_contained(assignment.cuts, factor); });
      bool carries = assignment.cuts.empty() && !assignment.pending.empty() &&
                     (!operand || llvm::is_contained(assignment.pending, *operand));
      // A result without the factor has one term on each rank, unless the factor is permuted.
      bool sums = !operand && assignment.cuts.size() == 1;
      uint32_t digit = found != dims.end() ? uint32_t(found - dims.begin()) + 1
                       : (carries || sums) ? pending
                                           : 0;
      digits.of.push_back(digit);
    }
    return digits;
  }

  /// Returns true if pins allow this assignment of `axis`: a pinned factor is cut by its axes only,
  /// and these cut no other factor. An axis pinned to a factor may still carry a pending sum.
  bool isAllowed(size_t axis, const AxisAssignment &assignment) const {
    if (!pinnedTerms.empty() && assignment.pending != pinnedTerms[axis]) {
      return false;
    }
    for (auto [factor, pin] : llvm::enumerate(pins)) {
      bool cuts = llvm::is_contained(assignment.cuts, factor);
      bool isPinned = pin && llvm::is_contained(*pin, axis);
      if ((pin && cuts && !isPinned) || (isPinned && !cuts && assignment.pending.empty())) {
        return false;
      }
    }
    return true;
  }

  void assign(size_t axis) {
    if (axis == does.size()) {
      if (spaces.isSearched(does, freesPinned ? pinnedAxes : SmallVector<uint32_t>())) {
        finish();
      }
      return;
    }
    int64_t ranks = mesh.getSizes()[axis];
    for (auto [number, assignment] : llvm::enumerate(assignments)) {
      if (!isAllowed(axis, assignment)) {
        continue;
      }
      bool divides = true;
      for (unsigned factor : assignment.cuts) {
        parts[factor] *= ranks;
        divides &= rule.factors[factor].size % parts[factor] == 0;
      }
      if (divides) {
        does[axis] = uint32_t(number);
        assign(axis + 1);
      }
      for (unsigned factor : assignment.cuts) {
        parts[factor] /= ranks;
      }
    }
  }

  uint32_t layoutOf(const Digits &digits) const {
    if (!digits.space) {
      return 0;
    }
    auto layout =
        llvm::map_to_vector(does, [&](uint32_t assignment) { return digits.of[assignment]; });
    uint32_t number = digits.space->numberOf(std::vector<uint32_t>(layout.begin(), layout.end()));
    return isInOtherOrder ? reordered(digits, number) : number;
  }

  /// Returns the layout with pinned axes in the order of the pin.
  uint32_t reordered(const Digits &digits, uint32_t number) const {
    planner::Layout layout = digits.space->layout(number);
    for (auto [axes, factor] : llvm::zip(layout.dims, digits.dims)) {
      if (pins[factor] && axes.size() == pins[factor]->size()) {
        axes = *pins[factor];
      }
    }
    return digits.space->numberOf(layout);
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
    cutsAsPinned |= llvm::all_of(llvm::seq(pins.size()), [&](size_t factor) {
      return !pins[factor] || llvm::all_of(*pins[factor], [&](uint32_t axis) {
        return llvm::is_contained(assignments[does[axis]].cuts, factor);
      });
    });
    option.parts.assign(parts.begin(), parts.end());
    for (auto [axis, assignment] : llvm::enumerate(does)) {
      option.name +=
          (axis == 0 ? "" : " ") + mesh.getNames()[axis].str() + ":" + assignments[assignment].name;
    }
    options.push_back(std::move(option));
  }

  ShardableOpInterface op;
  LayoutSpaces &spaces;
  const MeshAttr mesh;
  const FactorRule rule;
  std::vector<AxisAssignment> assignments;
  SmallVector<Digits> operands, results;
  SmallVector<int64_t> parts;
  /// The number of an assignment for each axis.
  SmallVector<uint32_t> does;
  /// The axes that each factor is pinned to.
  SmallVector<std::optional<planner::Axes>> pins;
  /// For each axis the operands that are pinned to be pending over it; empty without such a pin.
  SmallVector<SmallVector<unsigned>> pinnedTerms;
  /// All axes of pins.
  SmallVector<uint32_t> pinnedAxes;
  /// If true, the search considers all uses of these.
  bool freesPinned = false;
  /// If true, some option cuts all pinned factors by their axes.
  bool cutsAsPinned = false;
  bool isInOtherOrder = false;
  std::vector<OpOption> options;
};

} // namespace

std::vector<OpOption> enumerateOptions(ShardableOpInterface op, LayoutSpaces &spaces) {
  std::vector<OpOption> options = Enumeration(op, spaces, /*heedsPins=*/true).run();
  // Ignores pins that contradict each other, as those of plans written by hand may.
  return options.empty() ? Enumeration(op, spaces, /*heedsPins=*/false).run() : options;
}

/// Returns true if the dimensions have their pinned axes, and elsewhere axes in the mesh's order,
/// and if the value is pending over the pinned axes that cut no dimension.
static bool agrees(const planner::Layout &layout, MeshAttr mesh, ArrayAttr pins) {
  auto terms = pins.size() > layout.dims.size() ? cast<DictionaryAttr>(pins[layout.dims.size()])
                                                : DictionaryAttr();
  for (uint32_t axis : terms ? toAxes(mesh, terms.getAs<ArrayAttr>("all")) : planner::Axes()) {
    bool cuts = llvm::any_of(
        layout.dims, [&](const planner::Axes &axes) { return llvm::is_contained(axes, axis); });
    if (!cuts && !llvm::is_contained(layout.unreduced, axis)) {
      return false;
    }
  }
  return llvm::all_of(llvm::zip(layout.dims, pins), [&](const auto &dim) {
    auto [axes, pin] = dim;
    auto pinned = dyn_cast<ArrayAttr>(pin);
    return pinned ? axes == toAxes(mesh, pinned) : llvm::is_sorted(axes);
  });
}

/// Returns the axes of all pins of a value.
static planner::Axes pinnedAxes(MeshAttr mesh, ArrayAttr pins) {
  planner::Axes pinned;
  for (Attribute pin : pins ? pins.getValue() : ArrayRef<Attribute>()) {
    if (auto axes = dyn_cast<ArrayAttr>(pin)) {
      llvm::append_range(pinned, toAxes(mesh, axes));
    } else if (auto terms = dyn_cast<DictionaryAttr>(pin)) {
      for (NamedAttribute term : terms) {
        llvm::append_range(pinned, toAxes(mesh, cast<ArrayAttr>(term.getValue())));
      }
    }
  }
  return pinned;
}

std::vector<uint32_t> enumerateLayouts(RankedTensorType type, LayoutSpaces &spaces, bool pending,
                                       ArrayAttr pins) {
  const planner::LayoutSpace &space = spaces.of(type);
  std::vector<uint32_t> allowed;
  for (uint32_t number = 0; number < (pins ? space.size() : space.inOrder()); ++number) {
    bool mayPend = !space.isPending(number) || (pending && canPend(type));
    bool agreesWithPins = !pins || agrees(space.layout(number), spaces.getMesh(), pins);
    if (mayPend && agreesWithPins && space.divides(number, type.getShape().vec())) {
      allowed.push_back(number);
    }
  }
  return spaces.searchedOf(type.getRank(), allowed, pinnedAxes(spaces.getMesh(), pins));
}

} // namespace weft
