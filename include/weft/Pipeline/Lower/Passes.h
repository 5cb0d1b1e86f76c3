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
  Option<bool> devices{*this, "devices",
                       llvm::cl::desc("whether kernels become code for devices, too"),
                       llvm::cl::init(false)};
};

/// Appends the passes of the phase: kernel functions on tensors become functions of the LLVM
/// dialect on bare pointers, and everything else of the module goes. The context's registry
/// must know the models of `registerHostLoweringModels`. With `devices`, a module inside of it,
/// `kDevicesName`, has the same kernels in the shape that devices run.
void buildLowerPipeline(mlir::OpPassManager &manager, const LowerPipelineOptions &options = {});

/// Makes the passes known by name, and the pipeline as `lower`.
void registerLowerPasses();

} // namespace weft

#endif // WEFT_PIPELINE_LOWER_PASSES_H
