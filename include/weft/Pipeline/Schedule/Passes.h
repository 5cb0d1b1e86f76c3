//===- Passes.h - from local code to kernels and their launches -----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PIPELINE_SCHEDULE_PASSES_H
#define WEFT_PIPELINE_SCHEDULE_PASSES_H

#include "weft/Description/StageOrder.h"
#include "weft/Dialect/Weft/IR/Weft.h"
#include "weft/Pipeline/Target.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

namespace weft {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "weft/Pipeline/Schedule/Passes.h.inc"

/// Inputs of the phase that are not in the module.
struct ScheduleOptions {
  /// The machine, as the text of a machine.proto message. If empty, collectives are neither joined
  /// nor packed.
  std::string machine;
  TargetKind target = TargetKind::Host;
  /// Merge ops on the results of matmuls into the matmuls, for devices.
  bool fusesEpilogues = true;
  /// Turn matmuls of quantized values into FP8 matmuls where possible.
  bool encodesMatmuls = true;
  /// The schedule of stages, as order-stages has it; empty for a module without stages.
  std::string stageOrder;
  desc::GatherPeriod stageGather = desc::GatherPeriod::Step;
};

/// Appends the passes of the phase. Afterwards `flatten` makes the program of the module, or of
/// each stage's module in it.
void buildSchedulePipeline(mlir::OpPassManager &manager, const ScheduleOptions &options = {});

} // namespace weft

#endif // WEFT_PIPELINE_SCHEDULE_PASSES_H
