//===- ApplyPlan.cpp - writes what a plan pins --------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Batch.h"
#include "OpPins.h"

#include "weft/Description/Pins.h"
#include "weft/Dialect/Weft/IR/AttributeNames.h"
#include "weft/Dialect/Weft/IR/Sharding.h"
#include "weft/Pipeline/Plan/Passes.h"

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
    substituteBatch(module, batch);
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
    OpNames opNames(module);
    module.walk([&](ShardableOpInterface op) {
      setPins(op, pinsOf(op, mesh, opNames, dimensions, *spec));
    });
  }

  /// Unit for no entry.
  Attribute pinOf(const std::optional<std::vector<std::string>> &axes) {
    return axes ? Attribute(toAxesAttr(&getContext(), *axes)) : UnitAttr::get(&getContext());
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

  void setPins(Operation *op, ArrayRef<Attribute> pins) {
    if (!llvm::all_of(pins, llvm::IsaPred<UnitAttr>)) {
      op->setAttr(kPinsAttrName, ArrayAttr::get(&getContext(), pins));
    }
  }
};

} // namespace
} // namespace weft
