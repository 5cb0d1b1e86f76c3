//===- Passes.cpp - the order of the phase --------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Pipeline/Schedule/Passes.h"

using namespace mlir;
using namespace weft;

/// Appends the passes for a module without stages, or of one.
static void buildKernelPipeline(OpPassManager &manager, const ScheduleOptions &options) {
  // First, so that later passes merge its copies with other ops.
  BucketCollectivesPassOptions buckets;
  buckets.machine = options.machine;
  manager.addPass(createBucketCollectivesPass(buckets));
  if (options.target == TargetKind::Cuda) {
    // Only for collectives that stay alone: buckets are packed already.
    PackCollectivesPassOptions packs;
    packs.machine = options.machine;
    manager.addPass(createPackCollectivesPass(packs));
  }
  // Makes matmuls, before other passes look for them.
  manager.addNestedPass<func::FuncOp>(createConvolutionsToMatmulsPass());
  // Makes maps, before maps are merged.
  manager.addNestedPass<func::FuncOp>(createContractionsToMapsPass());
  // Makes sums that maps can join, also before maps are merged.
  manager.addNestedPass<func::FuncOp>(createContractionsToSumsPass());
  // Before a rounding becomes part of a larger map.
  manager.addNestedPass<func::FuncOp>(createNarrowResultsPass());
  if (options.encodesMatmuls) {
    // After it, since FP8 matmuls do not change the types of their results.
    EncodeMatmulsPassOptions encoding;
    encoding.machine = options.machine;
    manager.addPass(createEncodeMatmulsPass(encoding));
  }
  // Before the passes that follow, since it determines the kernels.
  manager.addNestedPass<func::FuncOp>(createFuseMapsPass());
  if (options.fusesEpilogues) {
    // Moves additions to the matmuls that can do them.
    manager.addPass(createAccumulateInMatmulsPass());
    // After maps are merged, so that a single map reads a matmul's result.
    manager.addNestedPass<func::FuncOp>(createFuseEpiloguesPass());
  }
  // After epilogues, which take in single maps.
  manager.addPass(createMergeMapsPass());
  // A map that works in place is another kernel, so places are decided before kernels are made.
  manager.addPass(createCopyAssignmentsPass());
  manager.addPass(createOutlineKernelsPass());
  // When it is decided which kernels work in place.
  manager.addPass(createFuseLaunchesPass());
  // Joins what no other op has taken in.
  manager.addPass(createJoinLaunchesPass());
  manager.addPass(createVerifySchedulePass());
}

void weft::buildSchedulePipeline(OpPassManager &manager, const ScheduleOptions &options) {
  // Before stages are ordered, since it is of all of them.
  manager.addNestedPass<func::FuncOp>(createPlaceAgreementsPass());
  if (options.stageOrder.empty()) {
    return buildKernelPipeline(manager, options);
  }
  // While all stages are in one module, as what they decide together has one order.
  manager.addPass(createObserveInStagesPass());
  OrderStagesPassOptions order;
  order.schedule = options.stageOrder;
  order.gather = desc::nameOf(options.stageGather);
  manager.addPass(createOrderStagesPass(order));
  // The rest sees one stage at a time: no pass moves anything from one to another any more.
  manager.addPass(createSeparateStagesPass());
  buildKernelPipeline(manager.nest<ModuleOp>(), options);
  // When all stages have their kernels: most are the same, and are compiled once.
  manager.addPass(createShareKernelsPass());
}
