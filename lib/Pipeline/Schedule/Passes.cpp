//===- Passes.cpp - the order of the phase --------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Pipeline/Schedule/Passes.h"

using namespace mlir;

void weft::buildSchedulePipeline(OpPassManager &manager, const ScheduleOptions &options) {
  // First: what it copies and puts in order is work like any other, and merges with it.
  BucketCollectivesPassOptions buckets;
  buckets.machine = options.machine;
  manager.addPass(createBucketCollectivesPass(buckets));
  if (options.target == TargetKind::Cuda) {
    // Of what stays alone: buckets are packed.
    PackCollectivesPassOptions packs;
    packs.machine = options.machine;
    manager.addPass(createPackCollectivesPass(packs));
  }
  // Makes matmuls, before anybody asks what is one.
  manager.addNestedPass<func::FuncOp>(createConvolutionsToMatmulsPass());
  // Makes maps, before maps are merged.
  manager.addNestedPass<func::FuncOp>(createContractionsToMapsPass());
  // Makes consumers of maps: as the pass before, before these are merged.
  manager.addNestedPass<func::FuncOp>(createContractionsToSumsPass());
  // Before a rounding becomes part of a map that does more.
  manager.addNestedPass<func::FuncOp>(createNarrowMatmulsPass());
  if (options.encodesMatmuls) {
    // Behind it: what is an FP8 matmul does not change its result's type any more.
    EncodeMatmulsPassOptions encoding;
    encoding.machine = options.machine;
    manager.addPass(createEncodeMatmulsPass(encoding));
  }
  // Before all that follows, since it decides what a kernel is.
  manager.addNestedPass<func::FuncOp>(createFuseMapsPass());
  if (options.fusesEpilogues) {
    // Brings to matmuls what they may take in.
    manager.addPass(createAccumulateInMatmulsPass());
    // After maps are merged, as what becomes of a matmul is then in one map that reads it.
    manager.addNestedPass<func::FuncOp>(createFuseEpiloguesPass());
  }
  // A map that works in place is another kernel: places are decided before there are kernels.
  manager.addPass(createCopyAssignmentsPass());
  manager.addPass(createOutlineKernelsPass());
  manager.addPass(createVerifySchedulePass());
}
