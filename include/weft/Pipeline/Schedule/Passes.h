//===- Passes.h - from local code to kernels and their launches -----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PIPELINE_SCHEDULE_PASSES_H
#define WEFT_PIPELINE_SCHEDULE_PASSES_H

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

/// What the phase has to know that is not in the module.
struct ScheduleOptions {
  /// The machine, as the text of a machine.proto message; without one nothing is joined or packed.
  std::string machine;
  TargetKind target = TargetKind::Host;
  /// Whether matmuls of devices take in what is done to their results.
  bool fusesEpilogues = true;
  /// Whether, where they can, they multiply FP8 numbers as bytes.
  bool encodesMatmuls = true;
};

/// Appends the passes of the phase. After them, `flatten` gives the program.
void buildSchedulePipeline(mlir::OpPassManager &manager, const ScheduleOptions &options = {});

} // namespace weft

#endif // WEFT_PIPELINE_SCHEDULE_PASSES_H
