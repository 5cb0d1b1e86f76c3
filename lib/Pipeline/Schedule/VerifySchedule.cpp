//===- VerifySchedule.cpp - checks the result of the phase ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OpKinds.h"
#include "Placement.h"
#include "weft/Pipeline/Schedule/Passes.h"

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_VERIFYSCHEDULEPASS
#include "weft/Pipeline/Schedule/Passes.h.inc"

namespace {

LogicalResult verifyTensors(Operation *op) {
  for (Type type : llvm::concat<const Type>(SmallVector<Type>(op->getOperandTypes()),
                                            SmallVector<Type>(op->getResultTypes()))) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (tensor && (tensor.getEncoding() || !tensor.hasStaticShape())) {
      return op->emitOpError() << "has " << type << " after schedule, expected a local tensor of "
                               << "static shape";
    }
  }
  return success();
}

LogicalResult verifyLaunch(LaunchOp launch, const ModuleSymbols &symbols) {
  func::FuncOp kernel = symbols.functions.lookup(launch.getKernelAttr().getAttr());
  auto tied = kernel ? kernel->getAttrOfType<DenseI64ArrayAttr>(kTiedAttrName) : nullptr;
  if (!tied || tied != launch.getTiedAttr() || kernel.isExternal()) {
    return launch.emitOpError() << "expected a kernel with a body and the same '" << kTiedAttrName
                                << "' as this launch, got @" << launch.getKernel();
  }
  return success();
}

LogicalResult verifyKind(Operation *op, bool isInit, const ModuleSymbols &symbols) {
  if (auto launch = dyn_cast<LaunchOp>(op)) {
    return verifyLaunch(launch, symbols);
  }
  if (isa<ObserveOp>(op) && isInit) {
    return op->emitOpError("stands in @init, expected in @step");
  }
  if (isa<ObserveOp, AgreeOp, ReadOp, AssignOp, CallOp, ReshapeOp, func::ReturnOp,
          arith::ConstantIndexOp>(op) ||
      isCommunication(op) || isMatmul(op)) {
    return success();
  }
  return op->emitOpError("is left after schedule, expected a kernel");
}

struct VerifySchedulePass : impl::VerifySchedulePassBase<VerifySchedulePass> {
  void runOnOperation() override {
    if (failed(verify(getOperation()))) {
      signalPassFailure();
    }
    markAllAnalysesPreserved();
  }

  LogicalResult verify(ModuleOp module) {
    if (!module->getAttrOfType<MeshAttr>(kMeshAttrName)) {
      return emitError(module.getLoc())
             << "expected a mesh in '" << kMeshAttrName << "' after schedule";
    }
    ModuleSymbols symbols(module);
    for (auto function : module.getOps<func::FuncOp>()) {
      if (!isKernel(function) && failed(verifyFunction(function, symbols))) {
        return failure();
      }
    }
    return linearizeSections(module, symbols);
  }

  LogicalResult verifyFunction(func::FuncOp function, const ModuleSymbols &symbols) {
    bool isInit = function.getSymName() == "init";
    for (Block &block : function.getBody()) {
      for (Operation &op : block) {
        if (failed(verifyKind(&op, isInit, symbols)) || failed(verifyTensors(&op))) {
          return failure();
        }
      }
    }
    return success();
  }
};

} // namespace
} // namespace weft
