//===- VerifyPlan.cpp - checks the result of Plan -----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Dialect/Weft/IR/Sharding.h"
#include "weft/Pipeline/Plan/Passes.h"

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_VERIFYPLANPASS
#include "weft/Pipeline/Plan/Passes.h.inc"

namespace {

struct VerifyPlanPass : impl::VerifyPlanPassBase<VerifyPlanPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    mesh = getMesh(module);
    if (!mesh) {
      module.emitError("verify-plan: the module has no mesh");
      return signalPassFailure();
    }
    WalkResult walk = module.walk([&](Operation *op) {
      if (auto variable = dyn_cast<VariableOp>(op)) {
        return check(op, variable.getTensorType());
      }
      SmallVector<Type> types(op->getResultTypes());
      for (Region &region : op->getRegions()) {
        llvm::append_range(types, region.getArgumentTypes());
      }
      for (Type type : types) {
        if (check(op, type).wasInterrupted()) {
          return WalkResult::interrupt();
        }
      }
      return WalkResult::advance();
    });
    if (walk.wasInterrupted()) {
      return signalPassFailure();
    }
    markAllAnalysesPreserved();
  }

  WalkResult check(Operation *op, Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor) {
      return WalkResult::advance();
    }
    ShardingAttr sharding = getSharding(tensor);
    if (!sharding) {
      op->emitError("verify-plan: ") << tensor << " has no sharding";
      return WalkResult::interrupt();
    }
    if (sharding.getMesh() != mesh) {
      op->emitError("verify-plan: ") << tensor << " does not lie on the module's mesh " << mesh;
      return WalkResult::interrupt();
    }
    if (!tensor.hasStaticShape()) {
      op->emitError("verify-plan: ") << tensor << " still has an unknown batch";
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  }

  MeshAttr mesh;
};

} // namespace
} // namespace weft
