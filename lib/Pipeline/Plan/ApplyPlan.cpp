//===- ApplyPlan.cpp - writes a plan's pins -----------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HomeEntries.h"
#include "LayoutSpaces.h"
#include "UnmatchedEntries.h"
#include "weft/Pipeline/ReadPlan.h"

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

struct ApplyPlanPass : impl::ApplyPlanPassBase<ApplyPlanPass> {
  using Base::Base;
  ApplyPlanPass(const ApplyPlanPassOptions &options, const desc::PlanSpec *written)
      : Base(options), written(written) {}

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<desc::PlanSpec> spec =
        readPlan(module, "apply-plan", plan, {pins.begin(), pins.end()}, written);
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
      OpPins found = pinsOf(op, opNames, dimensions, *spec);
      setPins(op, found.pins, found.entries);
      for (const OverruledEntry &entry : found.overruled) {
        overrule(opNames.nameOf(op), entry);
      }
    });
  }

  /// Warns of an entry once, for the first op or variable that it matches.
  void overrule(StringRef name, const OverruledEntry &overruled) {
    const desc::ShardingSpec &weaker = *overruled.weaker, &stronger = *overruled.stronger;
    if (!told.insert({&weaker, &stronger}).second) {
      return;
    }
    InFlightDiagnostic warning = emitWarning(placeOf(&getContext(), weaker.location))
                                 << "axes: " << textOf(weaker) << " does not hold for '" << name
                                 << "', as one axis cannot cut two dimensions";
    warning.attachNote(placeOf(&getContext(), stronger.location))
        << "stronger is " << textOf(stronger);
  }

  /// Refuses two equally strong entries.
  LogicalResult refuse(const std::string &name, VariableOp variable, const HomeEntries &home) {
    const desc::ShardingSpec &first = *home.dims[home.clash->first].entry;
    const desc::ShardingSpec &second = *home.dims[home.clash->second].entry;
    InFlightDiagnostic error = emitError(placeOf(&getContext(), second.location))
                               << "axes: expected an axis for one dimension of '" << name
                               << "', or priorities that differ, got '" << home.clash->axis
                               << "' for " << variable.getDimensions()[home.clash->first] << " and "
                               << variable.getDimensions()[home.clash->second];
    error.attachNote(placeOf(&getContext(), first.location)) << "by " << textOf(first);
    error.attachNote(placeOf(&getContext(), second.location)) << "by " << textOf(second);
    return failure();
  }

  /// Refuses an entry whose shards do not divide a dimension that is not padded.
  LogicalResult checkShards(const std::string &name, VariableOp variable, size_t dim,
                            const desc::ShardingSpec &entry, const desc::PlanSpec &spec) {
    int64_t size = variable.getTensorType().getDimSize(dim);
    if (size % shardsOf(spec, &entry) == 0) {
      return success();
    }
    return emitError(placeOf(&getContext(), entry.location))
           << "axes: expected shards that divide " << variable.getDimensions()[dim] << "=" << size
           << " of '" << name << "', got " << spec.parts().sized(entry.axes, " * ");
  }

  /// The pins of a home, and for each dimension the entry that it comes from, or null.
  struct HomePins {
    SmallVector<Attribute> pins;
    SmallVector<const desc::ShardingSpec *> entries;
  };

  LogicalResult pinHomes(ModuleOp module, MeshAttr mesh, const desc::PlanSpec &spec) {
    WeightCopies copies(module);
    for (VariableOp variable : module.getOps<VariableOp>()) {
      FailureOr<HomePins> home = pinsOfHome(variable, copies.homeOf(variable), spec);
      if (failed(home)) {
        return failure();
      }
      setPins(variable, home->pins, home->entries);
      if (!mesh.getNames().empty() && failed(constrainCopies(variable, copies, spec))) {
        return failure();
      }
    }
    for (GradientSum &sum : findGradientSums(module)) {
      FailureOr<HomePins> home = pinsOfHome(sum.variable, sum.home, spec);
      if (failed(home)) {
        return failure();
      }
      if (const desc::ShardingSpec *terms = desc::entryFor(spec.homes, sum.home, "terms")) {
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
        emitError(placeOf(type.getContext(), terms.location))
        << "axes: expected no partial sums over micro-batches of " << getElementTypeOrSelf(type)
        << " for '" << sum.home
        << "', use zero=2, zero=3, or gradient_accumulation: F32 in the recipe, got "
        << textOf(terms);
    return error;
  }

  /// The constraint is the value that is held: it may be gathered from the copies of shards.
  LogicalResult constrainCopies(VariableOp variable, const WeightCopies &copies,
                                const desc::PlanSpec &spec) {
    for (Value copy : copies.of(variable)) {
      FailureOr<HomePins> home = pinsOfHome(variable, variable.getSymName().str(), spec);
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
  FailureOr<HomePins> pinsOfHome(VariableOp variable, const std::string &name,
                                 const desc::PlanSpec &spec) {
    HomeEntries home = entriesOfHome(variable, name, spec);
    for (const OverruledEntry &entry : home.overruled) {
      overrule(name, entry);
    }
    if (home.clash) {
      return refuse(name, variable, home);
    }
    HomePins found;
    for (auto [dim, held] : llvm::enumerate(home.dims)) {
      if (held.entry && failed(checkShards(name, variable, dim, *held.entry, spec))) {
        return failure();
      }
      found.entries.push_back(held.entry);
      found.pins.push_back(held.entry ? Attribute(toAxesAttr(&getContext(), held.entry->axes))
                                      : UnitAttr::get(&getContext()));
    }
    return found;
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
