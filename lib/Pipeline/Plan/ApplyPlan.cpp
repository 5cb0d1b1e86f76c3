//===- ApplyPlan.cpp - writes a plan into variables ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Description/Pins.h"
#include "weft/Description/Plan.h"
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
      if (failed(shard(variable, mesh, *spec))) {
        return signalPassFailure();
      }
    }
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

  LogicalResult shard(VariableOp variable, MeshAttr mesh, const desc::PlanSpec &spec) {
    SmallVector<ArrayAttr> dims;
    for (StringAttr dimension : variable.getDimensions().getAsRange<StringAttr>()) {
      SmallVector<Attribute> axes;
      for (const std::string &axis :
           desc::axesFor(spec, getPlanName(variable).str(), dimension.getValue().str())) {
        axes.push_back(StringAttr::get(&getContext(), axis));
      }
      dims.push_back(ArrayAttr::get(&getContext(), axes));
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
    variable.setType(withSharding(type, sharding));
    return success();
  }
};

} // namespace
} // namespace weft
