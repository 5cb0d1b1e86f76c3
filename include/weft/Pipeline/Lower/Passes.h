//===- Passes.h - from kernel functions to the LLVM dialect --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PIPELINE_LOWER_PASSES_H
#define WEFT_PIPELINE_LOWER_PASSES_H

#include <memory>

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"

namespace weft {

#define GEN_PASS_DECL
#include "weft/Pipeline/Lower/Passes.h.inc"

struct LowerPipelineOptions : mlir::PassPipelineOptions<LowerPipelineOptions> {
  Option<bool> devices{*this, "devices", llvm::cl::desc("also make code for devices"),
                       llvm::cl::init(false)};
};

/// Appends the passes of the phase: kernel functions on tensors become functions of the LLVM
/// dialect on bare pointers, and the rest of the module is erased. The context's registry must have
/// the models of `registerHostLoweringModels`. With `devices`, a nested module named `kDevicesName`
/// has the same kernels in the form that devices run.
void buildLowerPipeline(mlir::OpPassManager &manager, const LowerPipelineOptions &options = {});

/// Registers the passes by name, and the pipeline as `lower`.
void registerLowerPasses();

} // namespace weft

#endif // WEFT_PIPELINE_LOWER_PASSES_H
