//===- Pipeline.h - the passes of a compilation, in order -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PIPELINE_PIPELINE_H
#define WEFT_PIPELINE_PIPELINE_H

#include "weft/Pipeline/Partition/Passes.h"
#include "weft/Pipeline/Phases.h"
#include "weft/Pipeline/Plan/Passes.h"
#include "weft/Pipeline/Target.h"

#include "mlir/Pass/PassManager.h"

#include <cstdint>
#include <optional>
#include <string>

namespace weft {

/// What passes have to know that is not in the module. What it points to must outlive them.
struct PipelineOptions {
  /// The plan, as the text of a plan.proto message.
  std::string plan;
  /// The machine, as the text of a machine.proto message.
  std::string machine;
  /// Sequences in the global batch.
  int64_t batch = 1;
  /// Micro-batches that it is taken in; divides the batch.
  int64_t accumulation = 1;
  /// The stages that a micro-batch passes through.
  desc::PipelineSpec pipeline;
  /// Whether ranks exchange bf16 where they add up float32.
  bool narrowReductions = false;
  /// Bytes of a device's memory that the search leaves for what it does not count.
  int64_t reserve = 0;
  /// Whether Plan pads variables that the plan leaves open, so that all ranks can cut them.
  bool padsOpenVariables = false;
  /// What the program is to run on: Plan, Schedule and Lower ask.
  TargetKind target = TargetKind::Host;
  /// Whether matmuls of devices take in what is done to their results.
  bool fusesEpilogues = true;
  /// Whether, where they can, they multiply FP8 numbers as bytes.
  bool encodesMatmuls = true;
  /// The same plan as `plan`, that knows where entries were written; null where nothing does.
  const desc::PlanSpec *writtenPlan = nullptr;
  /// The search of Plan answers it, where it is not null; see Plan/ValueQuestion.h.
  const ValueQuestion *question = nullptr;
  /// A mistake to plant after Partition, to see whether a test can tell.
  std::optional<MutateCollectivePassOptions> mutation;
};

/// Appends the passes of `phase`, which ends in its verifier. Import and Emit are functions, see
/// Import/Import.h and Emit/Emit.h: of Import there is only the verifier, of Emit nothing. Returns
/// what the passes of Plan find when they run; of other phases nothing.
PlanResults buildPhase(mlir::OpPassManager &manager, Phase phase, const PipelineOptions &options);

} // namespace weft

#endif // WEFT_PIPELINE_PIPELINE_H
