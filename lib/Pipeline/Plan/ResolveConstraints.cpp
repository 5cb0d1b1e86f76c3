//===- ResolveConstraints.cpp - pins from constraints that agree ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Links join values that are the same: ops pass them on unchanged. From each constraint, links are
// followed to the nearest one that disagrees, so that the path between the two shows where they
// meet.
//
//===----------------------------------------------------------------------===//

#include "HomedValues.h"
#include "weft/Dialect/Weft/IR/AttributeNames.h"
#include "weft/Dialect/Weft/IR/Sharding.h"
#include "weft/Pipeline/CallLinks.h"
#include "weft/Pipeline/Plan/Passes.h"

#include "mlir/IR/SymbolTable.h"

#include <deque>
#include <map>

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_RESOLVECONSTRAINTSPASS
#include "weft/Pipeline/Plan/Passes.h.inc"

namespace {

/// A link to the same value, by an op that passes it on.
struct Link {
  Value to;
  Operation *by;
};

class Links {
public:
  explicit Links(ModuleOp module) {
    SymbolTable symbols(module);
    DenseMap<StringAttr, Value> read;
    module.walk([&](Operation *op) {
      if (auto constrain = dyn_cast<ConstrainOp>(op)) {
        join(constrain.getInput(), constrain.getOutput(), op);
      } else if (auto one = dyn_cast<ReadOp>(op)) {
        auto [first, isNew] = read.try_emplace(one.getVariableAttr().getAttr(), one.getOutput());
        if (!isNew) {
          join(first->second, one.getOutput(), symbols.lookup(one.getVariable()));
        }
      } else if (auto call = dyn_cast<CallOp>(op)) {
        calls.follow(call, symbols.lookup<func::FuncOp>(call.getCallee()),
                     [&](Value outside, Value inside) { join(outside, inside, call); });
      }
    });
  }

  ArrayRef<Link> of(Value value) {
    auto found = links.find(value);
    return found == links.end() ? ArrayRef<Link>() : ArrayRef<Link>(found->second);
  }

private:
  void join(Value a, Value b, Operation *by) {
    if (isa<RankedTensorType>(a.getType())) {
      links[a].push_back({b, by});
      links[b].push_back({a, by});
    }
  }

  DenseMap<Value, SmallVector<Link, 2>> links;
  CallLinks calls;
};

/// Returns true if a layout can satisfy both constraints.
bool agree(ConstrainOp a, ConstrainOp b) {
  for (auto [number, dim] : llvm::enumerate(a.getDims())) {
    auto axes = dyn_cast<ArrayAttr>(dim);
    for (auto [otherNumber, otherDim] : llvm::enumerate(b.getDims())) {
      auto otherAxes = dyn_cast<ArrayAttr>(otherDim);
      if (!axes || !otherAxes) {
        continue;
      }
      bool shareAxis =
          llvm::any_of(axes, [&](Attribute axis) { return llvm::is_contained(otherAxes, axis); });
      if (number == otherNumber ? axes != otherAxes : shareAxis) {
        return false;
      }
    }
  }
  return true;
}

/// A constraint that disagrees with another, and the op that passes the value between them; null if
/// they are next to each other.
struct Conflict {
  ConstrainOp other;
  Operation *crossing = nullptr;
};

/// Constraints in `copies` hold rounded copies of weights in homes, which may differ between the
/// weights of calls of one function.
std::optional<Conflict> findConflict(ConstrainOp from, Links &links,
                                     const llvm::DenseSet<Operation *> &copies) {
  DenseMap<Value, Operation *> crossings = {{from.getInput(), nullptr},
                                            {from.getOutput(), nullptr}};
  std::deque<Value> open = {from.getInput(), from.getOutput()};
  while (!open.empty()) {
    Value value = open.front();
    open.pop_front();
    for (const Link &link : links.of(value)) {
      auto other = dyn_cast<ConstrainOp>(link.by);
      bool areOfCalls =
          other && crossings[value] && copies.contains(from) && copies.contains(other);
      if (other && !areOfCalls && !agree(from, other)) {
        return Conflict{other, crossings[value]};
      }
      Operation *crossing = crossings[value];
      if (crossings.try_emplace(link.to, crossing || other ? crossing : link.by).second) {
        open.push_back(link.to);
      }
    }
  }
  return std::nullopt;
}

/// What follows from a module until a constraint is removed.
struct Surroundings {
  explicit Surroundings(ModuleOp module)
      : links(module), copies(WeightCopies(module).constraints()) {}

  Links links;
  llvm::DenseSet<Operation *> copies;
};

struct ResolveConstraintsPass : impl::ResolveConstraintsPassBase<ResolveConstraintsPass> {
  void runOnOperation() override {
    // The strongest first, as it removes weaker ones that disagree.
    std::multimap<uint64_t, ConstrainOp> byPriority;
    getOperation().walk([&](ConstrainOp op) { byPriority.insert({op.getPriority(), op}); });
    auto constraints = llvm::to_vector(llvm::make_second_range(byPriority));
    if (constraints.empty()) {
      return;
    }
    MeshAttr mesh = getMesh(getOperation());
    if (!mesh) {
      getOperation().emitError(
          "resolve-constraints: expected a module with a mesh, see apply-plan");
      return signalPassFailure();
    }
    for (ConstrainOp op : constraints) {
      splitNames(op, mesh);
    }
    std::optional<Surroundings> known;
    for (size_t i = 0; i < constraints.size(); ++i) {
      if (failed(check(constraints[i], mesh)) || failed(overruleOthers(i, constraints, known))) {
        return signalPassFailure();
      }
      pin(constraints[i]);
    }
  }

  /// Lists the parts of the axes and sub-axes that the constraint names.
  static void splitNames(ConstrainOp op, MeshAttr mesh) {
    auto dims = llvm::map_to_vector(op.getDims(), [&](Attribute dim) -> Attribute {
      auto axes = dyn_cast<ArrayAttr>(dim);
      return axes ? Attribute(mesh.splitNames(axes)) : dim;
    });
    op.setDimsAttr(ArrayAttr::get(op.getContext(), dims));
  }

  /// Checks that the mesh has the axes and that they divide the dimensions.
  static LogicalResult check(ConstrainOp op, MeshAttr mesh) {
    auto type = cast<RankedTensorType>(op.getInput().getType());
    for (auto [dim, size] : llvm::zip(op.getDims(), type.getShape())) {
      auto axes = dyn_cast<ArrayAttr>(dim);
      if (!axes) {
        continue;
      }
      for (StringAttr axis : axes.getAsRange<StringAttr>()) {
        if (!llvm::is_contained(mesh.getNames(), axis)) {
          return op.emitError("resolve-constraints: unknown axis ")
                 << axis << ", expected one of " << mesh;
        }
      }
      if (ShapedType::isDynamic(size) || size % mesh.getSize(axes) != 0) {
        return op.emitError("resolve-constraints: ")
               << type << " cannot be cut as it is constrained: " << axes << " are "
               << mesh.getSize(axes) << " ranks, which does not divide " << size;
      }
    }
    return success();
  }

  /// Removes all constraints that disagree with number `strong`. `known` is of the module as it is,
  /// or empty.
  LogicalResult overruleOthers(size_t strong, SmallVectorImpl<ConstrainOp> &constraints,
                               std::optional<Surroundings> &known) {
    ConstrainOp stronger = constraints[strong];
    for (;;) {
      if (!known) {
        known.emplace(getOperation());
      }
      std::optional<Conflict> conflict = findConflict(stronger, known->links, known->copies);
      if (!conflict) {
        return success();
      }
      ConstrainOp weaker = conflict->other;
      if (weaker.getPriority() == stronger.getPriority()) {
        InFlightDiagnostic error = weaker.emitError("resolve-constraints: ");
        describe(error << "expected one sharding of a value, got ", *conflict, stronger);
        return failure();
      }
      InFlightDiagnostic warning = weaker.emitWarning("resolve-constraints: does not hold: ");
      describe(warning, *conflict, stronger);
      warning.report();
      llvm::erase(constraints, weaker);
      weaker.replaceAllUsesWith(weaker.getInput());
      weaker.erase();
      known.reset();
      ++numDropped;
    }
  }

  static void describe(InFlightDiagnostic &diagnostic, Conflict conflict, ConstrainOp stronger) {
    diagnostic << conflict.other.getDims() << " with priority "
               << static_cast<int64_t>(conflict.other.getPriority())
               << " and, by another constraint, " << stronger.getDims() << " with priority "
               << static_cast<int64_t>(stronger.getPriority());
    diagnostic.attachNote(stronger.getLoc()) << "this is the other constraint";
    if (!conflict.crossing) {
      diagnostic.attachNote(stronger.getInput().getLoc()) << "both are of this value";
    } else if (auto variable = dyn_cast<VariableOp>(conflict.crossing)) {
      diagnostic.attachNote(variable.getLoc())
          << "both constrain the value of variable '" << variable.getSymName() << "'";
    } else {
      auto call = cast<CallOp>(conflict.crossing);
      diagnostic.attachNote(call.getLoc()) << "they meet where '" << call.getCallee()
                                           << "' is called as '" << call.getLabel() << "'";
    }
  }

  /// Pins the value. Dimensions that the constraint leaves open take the plan's axes, if these are
  /// free.
  static void pin(ConstrainOp op) {
    MLIRContext *context = op.getContext();
    SmallVector<Attribute> pins(op.getDims().getValue());
    auto isTaken = [&](Attribute axis) {
      return llvm::any_of(op.getDims(), [&](Attribute dim) {
        auto axes = dyn_cast<ArrayAttr>(dim);
        return axes && llvm::is_contained(axes, axis);
      });
    };
    if (auto planned = op->getAttrOfType<ArrayAttr>(kPinsAttrName)) {
      for (auto [pin, ofPlan] : llvm::zip(pins, planned)) {
        auto axes = dyn_cast<ArrayAttr>(ofPlan);
        bool isFree = axes && llvm::none_of(axes, isTaken);
        pin = isa<UnitAttr>(pin) && isFree ? ofPlan : pin;
      }
    }
    pins.push_back(DictionaryAttr::get(context)); // Nothing is pending.
    op->setAttr(kPinsAttrName, ArrayAttr::get(context, pins));
  }
};

} // namespace
} // namespace weft
