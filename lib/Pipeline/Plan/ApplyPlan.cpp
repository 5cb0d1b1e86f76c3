//===- ApplyPlan.cpp - writes what a plan pins --------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Dimensions.h"

#include "weft/Description/Pins.h"
#include "weft/Description/Plan.h"
#include "weft/Dialect/Weft/IR/AttributeNames.h"
#include "weft/Dialect/Weft/IR/Sharding.h"
#include "weft/Pipeline/Plan/Passes.h"

#include "mlir/IR/AttrTypeSubElements.h"

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

/// The name that a plan knows a variable by: an optimizer state goes by its parameter's.
StringRef getPlanName(VariableOp variable) {
  StringRef name = variable.getSymName();
  return variable.getRole() == VariableRole::Optimizer ? name.substr(name.find('/') + 1) : name;
}

struct ApplyPlanPass : impl::ApplyPlanPassBase<ApplyPlanPass> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (batch < 1) {
      module.emitError("apply-plan: expected a batch of at least 1, got ")
          << static_cast<int64_t>(batch);
      return signalPassFailure();
    }
    desc::Result<desc::PlanSpec> spec =
        plan.empty() ? desc::applyPins({pins.begin(), pins.end()}) : desc::parsePlan(plan, "plan");
    if (!spec) {
      module.emitError("apply-plan: ") << desc::str(spec.diagnostics());
      return signalPassFailure();
    }
    substituteBatch(module);
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
    for (VariableOp variable : module.getOps<VariableOp>()) {
      if (failed(pin(variable, mesh, *spec))) {
        return signalPassFailure();
      }
    }
    Dimensions dimensions(module);
    module.walk([&](ShardableOpInterface op) { pin(op, mesh, dimensions, *spec); });
  }

  /// Replaces `?` by the batch in every type.
  void substituteBatch(ModuleOp module) {
    AttrTypeReplacer replacer;
    replacer.addReplacement([&](RankedTensorType type) -> std::optional<Type> {
      SmallVector<int64_t> shape(type.getShape());
      llvm::replace(shape, ShapedType::kDynamic, static_cast<int64_t>(batch));
      return RankedTensorType::get(shape, type.getElementType(), type.getEncoding());
    });
    replacer.recursivelyReplaceElementsIn(module, /*replaceAttrs=*/true,
                                          /*replaceLocs=*/false, /*replaceTypes=*/true);
  }

  /// The axes of a plan's entry as an attribute; unit for no entry.
  Attribute pinOf(const std::optional<std::vector<std::string>> &axes) {
    if (!axes) {
      return UnitAttr::get(&getContext());
    }
    return ArrayAttr::get(&getContext(),
                          llvm::map_to_vector(*axes, [&](const std::string &axis) -> Attribute {
                            return StringAttr::get(&getContext(), axis);
                          }));
  }

  LogicalResult pin(VariableOp variable, MeshAttr mesh, const desc::PlanSpec &spec) {
    std::string name = variable.getSymName().str(), planName = getPlanName(variable).str();
    SmallVector<Attribute> pins;
    SmallVector<ArrayAttr> dims;
    for (StringAttr dimension : variable.getDimensions().getAsRange<StringAttr>()) {
      auto axes = desc::axesFor(spec.homes, name, dimension.getValue().str());
      pins.push_back(
          pinOf(axes ? axes : desc::axesFor(spec.shardings, planName, dimension.getValue().str())));
      auto pinned = dyn_cast<ArrayAttr>(pins.back());
      dims.push_back(pinned ? pinned : ArrayAttr::get(&getContext(), {}));
    }
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
    setPins(variable, pins);
    return success();
  }

  /// An op is pinned where it can be cut so. Of several factors for one axis it cuts the first that
  /// results have, so that nothing is pending that need not be.
  void pin(ShardableOpInterface op, MeshAttr mesh, Dimensions &dimensions,
           const desc::PlanSpec &spec) {
    FactorRule rule = op.getFactorRule();
    std::string name = nameOf(op);
    SmallVector<Attribute> pins(rule.factors.size()), taken;
    SmallVector<size_t> order, summed;
    for (auto [number, factor] : llvm::enumerate(rule.factors)) {
      (factor.kind == FactorKind::Reduction ? summed : order).push_back(number);
    }
    order.append(summed);
    for (size_t number : order) {
      const Factor &factor = rule.factors[number];
      bool isPermutation = factor.kind == FactorKind::Permutation;
      Attribute pin = UnitAttr::get(&getContext());
      for (const desc::ShardingSpec &entry : llvm::reverse(spec.shardings)) {
        // What a permutation is of has its partner's names, and this one besides.
        bool isMeant = isPermutation
                           ? entry.dimension == "keys"
                           : dimensions.isNamed(op, rule, unsigned(number), entry.dimension);
        if (isMeant && desc::matchesPattern(entry.value, name)) {
          pin = pinOf(entry.axes);
          break;
        }
      }
      auto axes = dyn_cast<ArrayAttr>(pin);
      bool isTaken = axes && !isPermutation && llvm::any_of(axes, [&](Attribute axis) {
                       return llvm::is_contained(taken, axis);
                     });
      if (axes && (isTaken || factor.kind == FactorKind::MustReplicate ||
                   factor.size % mesh.getSize(axes) != 0)) {
        pin = UnitAttr::get(&getContext());
      } else if (axes) {
        llvm::append_range(taken, axes);
      }
      pins[number] = pin;
    }
    setPins(op, pins);
  }

  static std::string nameOf(Operation *op) {
    auto location = op->getLoc()->findInstanceOf<NameLoc>();
    return location ? location.getName().str() : "";
  }

  void setPins(Operation *op, ArrayRef<Attribute> pins) {
    if (llvm::any_of(pins, llvm::IsaPred<ArrayAttr>)) {
      op->setAttr(kPinsAttrName, ArrayAttr::get(&getContext(), pins));
    }
  }
};

} // namespace
} // namespace weft
