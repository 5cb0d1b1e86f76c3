//===- Pipeline.cpp - the passes of the phase in order -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "weft/Pipeline/Lower/Passes.h"

namespace weft {

namespace {
#define GEN_PASS_REGISTRATION
#include "weft/Pipeline/Lower/Passes.h.inc"
} // namespace

/// From kernel functions on tensors to the LLVM dialect.
static void lowerKernels(mlir::OpPassManager &manager, bool forDevices) {
  manager.addPass(createLowerKernelsToLoopsPass({forDevices}));
  // While loops still say that their rounds are independent.
  manager.addPass(createSplitPhasesPass());
  // Loops are built without care for repeated index arithmetic.
  manager.addPass(mlir::createCSEPass());
  // After the loops, which convert where they load and store.
  manager.addPass(createExpandBF16Pass({forDevices}));
  // Before the LLVM dialect, where a function would be a call that does not vectorize.
  manager.addPass(createApproximateMathPass({forDevices}));
  manager.addPass(createConvertKernelsToLLVMPass());
}

void buildLowerPipeline(mlir::OpPassManager &manager, const LowerPipelineOptions &options) {
  // The instruction table has all that functions of the step say.
  manager.addPass(createKeepKernelsPass());
  if (options.devices) {
    manager.addPass(createCopyForDevicesPass());
    // Before the host's, whose last pass takes all that is in the module.
    lowerKernels(manager.nest<mlir::ModuleOp>(), /*forDevices=*/true);
  }
  lowerKernels(manager, /*forDevices=*/false);
}

void registerLowerPasses() {
  registerKeepKernelsPass();
  registerCopyForDevicesPass();
  registerLowerKernelsToLoopsPass();
  registerSplitPhasesPass();
  registerExpandBF16Pass();
  registerApproximateMathPass();
  registerConvertKernelsToLLVMPass();
  mlir::PassPipelineRegistration<LowerPipelineOptions>(
      "lower", "kernel functions to the LLVM dialect", buildLowerPipeline);
}

} // namespace weft
