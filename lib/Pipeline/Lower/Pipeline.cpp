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

/// Lowers kernel functions to the LLVM dialect.
static void lowerKernels(mlir::OpPassManager &manager, bool forDevices) {
  manager.addPass(createLowerKernelsToLoopsPass({forDevices}));
  // While parallel loops are still marked as such.
  manager.addPass(createSplitPhasesPass({forDevices}));
  // Removes repeated index arithmetic, which the builders of loops do not avoid.
  manager.addPass(mlir::createCSEPass());
  // After the loops, whose loads and stores convert.
  manager.addPass(createExpandBF16Pass({forDevices}));
  // Before the LLVM dialect, where such a function is a call that does not vectorize.
  manager.addPass(createApproximateMathPass({forDevices}));
  manager.addPass(createConvertKernelsToLLVMPass({forDevices}));
}

void buildLowerPipeline(mlir::OpPassManager &manager, const LowerPipelineOptions &options) {
  // The instruction table already has the contents of the step's functions.
  manager.addPass(createKeepKernelsPass());
  if (options.devices) {
    manager.addPass(createCopyForDevicesPass());
    // Before the passes for the host, the last of which converts the whole module.
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
