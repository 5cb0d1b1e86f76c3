//===- BuildPipeline.cpp - the order of all phases, with the reasons ------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Pipeline/Pipeline.h"

#include "weft/Pipeline/Differentiate/Passes.h"
#include "weft/Pipeline/Import/Passes.h"
#include "weft/Pipeline/Lower/Passes.h"
#include "weft/Pipeline/Plan/Passes.h"
#include "weft/Pipeline/Schedule/Passes.h"

using namespace mlir;
using namespace weft;

namespace {

PlanResults buildPlan(OpPassManager &manager, const PipelineOptions &options) {
  StepParts parts = makeStepParts(options.batch, options.accumulation, options.pipeline);
  ApplyPlanPassOptions plan;
  plan.plan = options.plan;
  plan.origins = options.question != nullptr;
  SearchShardingsPassOptions search;
  search.machine = options.machine;
  search.reserve = options.reserve;
  search.fp8Matmuls = options.target == TargetKind::Cuda && options.encodesMatmuls;
  return buildPlanPipeline(manager, parts, plan, search,
                           {options.writtenPlan, options.question, options.padsOpenVariables,
                            /*alignsRows=*/options.target == TargetKind::Cuda});
}

void buildPartition(OpPassManager &manager, const PipelineOptions &options) {
  ReshardToCollectivesPassOptions reshard;
  reshard.machine = options.machine;
  reshard.narrowReductions = options.narrowReductions;
  SplitBackwardPassOptions backward;
  llvm::append_range(backward.chunks, options.pipeline.chunksWithParts());
  buildPartitionPipeline(manager, reshard, options.mutation, backward);
}

void buildLower(OpPassManager &manager, const PipelineOptions &options) {
  LowerPipelineOptions lower;
  lower.devices = options.target == TargetKind::Cuda;
  buildLowerPipeline(manager, lower);
}

} // namespace

PlanResults weft::buildPhase(OpPassManager &manager, Phase phase, const PipelineOptions &options) {
  switch (phase) {
  case Phase::Import:
    // A module may also have been written by hand: what the others rely on is checked first.
    buildImportPipeline(manager);
    break;
  case Phase::Differentiate:
    // Before Plan, so that the backward pass and the optimizer's update are sharded by the same
    // rules as the forward pass, and no phase after this one knows what a gradient is.
    buildDifferentiatePipeline(manager, options.writtenPlan);
    break;
  case Phase::Plan:
    // On whole tensors, where a dimension still has its name and an op one meaning whatever the
    // number of ranks.
    return buildPlan(manager, options);
  case Phase::Partition:
    // At once after Plan: between the two, an upstream pattern could drop an encoding. It makes
    // tensors local, and only then may upstream's passes run.
    buildPartition(manager, options);
    break;
  case Phase::Schedule:
    // Local shapes are known, and collectives are ops: what is left can become kernels that never
    // communicate, and one straight line that can be proven.
    buildSchedulePipeline(
        manager, {options.machine, options.target, options.fusesEpilogues, options.encodesMatmuls,
                  options.pipeline.stages > 1 ? options.pipeline.scheduleText() : std::string(),
                  options.pipeline.gather});
    break;
  case Phase::Lower:
    // After the table has been made, because this keeps nothing of a module but its kernels.
    buildLower(manager, options);
    break;
  case Phase::Emit:
    break;
  }
  return {};
}
