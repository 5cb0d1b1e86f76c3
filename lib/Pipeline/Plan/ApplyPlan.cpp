//===- ApplyPlan.cpp - writes a plan's pins -----------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HomedValues.h"
#include "LayoutSpaces.h"
#include "OpPins.h"
#include "ReadPlan.h"
#include "UnmatchedEntries.h"

#include "weft/Dialect/Weft/IR/AttributeNames.h"
#include "weft/Dialect/Weft/IR/Sharding.h"
#include "weft/Pipeline/Plan/Passes.h"

#include <set>

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_APPLYPLANPASS
#include "weft/Pipeline/Plan/Passes.h.inc"

MeshAttr getMesh(Operation *op) {
  auto module = isa<ModuleOp>(op) ? cast<ModuleOp>(op) : op->getParentOfType<ModuleOp>();
  return module->getAttrOfType<MeshAttr>(kMeshAttrName);
}

namespace {

using ErrorEmitter = llvm::function_ref<InFlightDiagnostic()>;

/// An axis that entries cut two dimensions of a variable by.
struct AxisClash {
  StringAttr axis;
  size_t first, second;
};

std::optional<AxisClash> findClash(ArrayRef<Attribute> pins) {
  DenseMap<Attribute, size_t> cut;
  for (auto [dim, pin] : llvm::enumerate(pins)) {
    auto axes = dyn_cast<ArrayAttr>(pin);
    for (Attribute axis : axes ? axes.getValue() : ArrayRef<Attribute>()) {
      auto [known, isNew] = cut.try_emplace(axis, dim);
      if (!isNew && known->second != dim) {
        return AxisClash{cast<StringAttr>(axis), known->second, dim};
      }
    }
  }
  return std::nullopt;
}

struct ApplyPlanPass : impl::ApplyPlanPassBase<ApplyPlanPass> {
  using Base::Base;
  ApplyPlanPass(const ApplyPlanPassOptions &options, const desc::PlanSpec *written)
      : Base(options), written(written) {}

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<desc::PlanSpec> spec =
        written ? FailureOr<desc::PlanSpec>(*written)
                : readPlan(module, "apply-plan", plan, {pins.begin(), pins.end()});
    if (failed(spec)) {
      return signalPassFailure();
    }
    SmallVector<StringAttr> names;
    SmallVector<int64_t> sizes;
    for (const desc::AxisSpec &axis : spec->mesh) {
      names.push_back(StringAttr::get(&getContext(), axis.name));
      sizes.push_back(axis.size);
    }
    auto emitError = [&] { return module.emitError("apply-plan: "); };
    MeshAttr mesh = MeshAttr::getChecked(ErrorEmitter(emitError), &getContext(), ArrayRef(names),
                                         ArrayRef(sizes));
    if (!mesh) {
      return signalPassFailure();
    }
    module->setAttr(kMeshAttrName, mesh);
    if (failed(pinHomes(module, mesh, *spec))) {
      return signalPassFailure();
    }
    if (spec->shardings.empty() && spec->homes.empty()) {
      return;
    }
    Dimensions dimensions(module);
    OpNames opNames(module);
    if (failed(checkMatches(module, *spec, opNames, dimensions))) {
      return signalPassFailure();
    }
    llvm::DenseSet<Operation *> held = WeightCopies(module).constraints();
    module.walk([&](ShardableOpInterface op) {
      if (held.contains(op)) {
        return; // Homes decide.
      }
      OpPins found = pinsOf(op, mesh, opNames, dimensions, *spec);
      setPins(op, found.pins, found.entries);
      for (const OverruledEntry &entry : found.overruled) {
        overrule(op, opNames.nameOf(op), *entry.weaker, *entry.stronger);
      }
    });
  }

  /// Warns of an entry once, at the first op or variable that it matches.
  void overrule(Operation *op, StringRef name, const desc::ShardingSpec &weaker,
                const desc::ShardingSpec &stronger) {
    if (!told.insert({&weaker, &stronger}).second) {
      return;
    }
    InFlightDiagnostic warning = op->emitWarning("apply-plan: '")
                                 << name << "': " << desc::describeEntry(weaker)
                                 << " does not hold, as one axis cannot cut two dimensions";
    warning.attachNote() << "stronger is " << desc::describeEntry(stronger);
  }

  /// Keeps the stronger of two entries that cut two dimensions over one axis.
  LogicalResult resolve(VariableOp variable, SmallVectorImpl<Attribute> &pins,
                        SmallVectorImpl<const desc::ShardingSpec *> &entries) {
    while (std::optional<AxisClash> clash = findClash(pins)) {
      const desc::ShardingSpec &first = *entries[clash->first], &second = *entries[clash->second];
      if (first.priority == second.priority) {
        InFlightDiagnostic error = variable.emitError("apply-plan: '")
                                   << variable.getSymName() << "': axis " << clash->axis
                                   << " is to cut two dimensions, "
                                   << variable.getDimensions()[clash->first] << " and "
                                   << variable.getDimensions()[clash->second]
                                   << "; expected one, or priorities that differ";
        error.attachNote() << "by " << desc::describeEntry(first);
        error.attachNote() << "by " << desc::describeEntry(second);
        return failure();
      }
      bool isFirstWeaker = first.priority > second.priority;
      size_t weaker = isFirstWeaker ? clash->first : clash->second;
      overrule(variable, variable.getSymName(), isFirstWeaker ? first : second,
               isFirstWeaker ? second : first);
      pins[weaker] = UnitAttr::get(&getContext());
      entries[weaker] = nullptr;
    }
    return success();
  }

  /// The pins of a home, and for each dimension the entry that it comes from, or null.
  struct HomePins {
    SmallVector<Attribute> pins;
    SmallVector<const desc::ShardingSpec *> entries;
  };

  LogicalResult pinHomes(ModuleOp module, MeshAttr mesh, const desc::PlanSpec &spec) {
    WeightCopies copies(module);
    for (VariableOp variable : module.getOps<VariableOp>()) {
      FailureOr<HomePins> home = pinsOfHome(variable, copies.homeOf(variable), mesh, spec);
      if (failed(home)) {
        return failure();
      }
      setPins(variable, home->pins, home->entries);
      if (!mesh.getNames().empty() && failed(constrainCopies(variable, copies, mesh, spec))) {
        return failure();
      }
    }
    for (GradientSum &sum : findGradientSums(module)) {
      std::string name = ("gradient/" + sum.variable.getSymName()).str();
      FailureOr<HomePins> home = pinsOfHome(sum.variable, name, mesh, spec);
      if (failed(home)) {
        return failure();
      }
      if (const desc::ShardingSpec *terms = desc::entryFor(spec.homes, name, "terms")) {
        if (failed(checkTerms(sum, *terms))) {
          return failure();
        }
        NamedAttribute all(StringAttr::get(&getContext(), "all"),
                           toAxesAttr(&getContext(), terms->axes));
        home->pins.push_back(DictionaryAttr::get(&getContext(), all));
      }
      auto pins = ArrayAttr::get(&getContext(), home->pins);
      sum.function.setArgAttr(sum.argument, kPinsAttrName, pins);
      sum.function.setResultAttr(sum.result, kPinsAttrName, pins);
    }
    return success();
  }

  /// A narrow sum has no partials, which would be rounded before they are reduced.
  static LogicalResult checkTerms(GradientSum &sum, const desc::ShardingSpec &terms) {
    Type type = sum.function.getArgumentTypes()[sum.argument];
    if (terms.axes.empty() || canPend(type)) {
      return success();
    }
    InFlightDiagnostic error =
        sum.variable.emitError("apply-plan: 'gradient/")
        << sum.variable.getSymName() << "': expected no partial sums over micro-batches of "
        << getElementTypeOrSelf(type)
        << ", use zero=2, zero=3, or gradient_accumulation: F32 in the recipe";
    error.attachNote() << "by " << desc::describeEntry(terms);
    return failure();
  }

  /// The constraint is the value that is held: it may be gathered from the copies of shards.
  LogicalResult constrainCopies(VariableOp variable, const WeightCopies &copies, MeshAttr mesh,
                                const desc::PlanSpec &spec) {
    for (Value copy : copies.of(variable)) {
      FailureOr<HomePins> home = pinsOfHome(variable, variable.getSymName().str(), mesh, spec);
      if (failed(home)) {
        return failure();
      }
      OpBuilder builder(&getContext());
      builder.setInsertionPointAfterValue(copy);
      auto held = ConstrainOp::create(builder, copy.getLoc(), copy.getType(), copy,
                                      ArrayAttr::get(&getContext(), home->pins));
      copy.replaceAllUsesExcept(held.getOutput(), held);
    }
    return success();
  }

  /// Returns the pins of the home that is called `name`, of the shape of `variable`.
  FailureOr<HomePins> pinsOfHome(VariableOp variable, const std::string &name, MeshAttr mesh,
                                 const desc::PlanSpec &spec) {
    std::string planName = getPlanName(variable).str();
    auto [pins, entries] = HomePins();
    for (auto [dim, dimension] :
         llvm::enumerate(variable.getDimensions().getAsRange<StringAttr>())) {
      const desc::ShardingSpec *entry = desc::entryFor(spec.homes, name, dimension.str());
      // Entries for ops apply to inputs only as far as inputs can follow.
      if (!entry && mayBeCut(variable, int64_t(dim))) {
        entry = desc::entryFor(spec.shardings, planName, dimension.str());
      }
      entries.push_back(entry);
      pins.push_back(entries.back() ? Attribute(toAxesAttr(&getContext(), entries.back()->axes))
                                    : UnitAttr::get(&getContext()));
    }
    if (failed(resolve(variable, pins, entries))) {
      return failure();
    }
    auto dims = llvm::map_to_vector(pins, [&](Attribute pin) {
      auto axes = dyn_cast<ArrayAttr>(pin);
      return axes ? axes : ArrayAttr::get(&getContext(), {});
    });
    auto emitError = [&] {
      return variable.emitError("apply-plan: '") << variable.getSymName() << "': ";
    };
    ShardingAttr sharding =
        ShardingAttr::getChecked(ErrorEmitter(emitError), &getContext(), mesh, ArrayRef(dims),
                                 ArrayAttr::get(&getContext(), {}), ReductionKind::Sum);
    RankedTensorType type = variable.getTensorType();
    if (!sharding ||
        failed(sharding.verifyEncoding(type.getShape(), type.getElementType(), emitError))) {
      return failure();
    }
    return HomePins{std::move(pins), std::move(entries)};
  }

  void setPins(Operation *op, ArrayRef<Attribute> pins,
               ArrayRef<const desc::ShardingSpec *> entries) {
    if (llvm::all_of(pins, llvm::IsaPred<UnitAttr>)) {
      return;
    }
    op->setAttr(kPinsAttrName, ArrayAttr::get(&getContext(), pins));
    if (origins) {
      auto texts = llvm::map_to_vector(entries, [&](const desc::ShardingSpec *entry) -> Attribute {
        return entry ? Attribute(StringAttr::get(&getContext(), desc::describeEntry(*entry)))
                     : UnitAttr::get(&getContext());
      });
      op->setAttr(kPinnedByAttrName, ArrayAttr::get(&getContext(), texts));
    }
  }

private:
  /// The plan to apply in place of the option's text; may be null.
  const desc::PlanSpec *written = nullptr;
  std::set<std::pair<const desc::ShardingSpec *, const desc::ShardingSpec *>> told;
};

} // namespace

std::unique_ptr<Pass> createApplyPlanPass(const ApplyPlanPassOptions &options,
                                          const desc::PlanSpec *plan) {
  return std::make_unique<ApplyPlanPass>(options, plan);
}

} // namespace weft
