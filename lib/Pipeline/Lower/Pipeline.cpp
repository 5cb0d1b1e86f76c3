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

void buildLowerPipeline(mlir::OpPassManager &manager) {
  // The instruction table has all that functions of the step say.
  manager.addPass(createKeepKernelsPass());
  manager.addPass(createLowerKernelsToLoopsPass());
  // While loops still say that their rounds are independent.
  manager.addPass(createSplitPhasesPass());
  // Loops are built without care for repeated index arithmetic.
  manager.addPass(mlir::createCSEPass());
  // After the loops, which convert where they load and store.
  manager.addPass(createExpandBF16Pass());
  // Before the LLVM dialect, where a function would be a call that does not vectorize.
  manager.addPass(createApproximateMathPass());
  manager.addPass(createConvertKernelsToLLVMPass());
}

void registerLowerPasses() {
  registerKeepKernelsPass();
  registerLowerKernelsToLoopsPass();
  registerSplitPhasesPass();
  registerExpandBF16Pass();
  registerApproximateMathPass();
  registerConvertKernelsToLLVMPass();
  mlir::PassPipelineRegistration<>("lower", "kernel functions to the LLVM dialect",
                                   buildLowerPipeline);
}

} // namespace weft
