//===- Passes.cpp - the order of the phase --------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Pipeline/Partition/Passes.h"

using namespace mlir;

void weft::buildPartitionPipeline(OpPassManager &manager,
                                  const ReshardToCollectivesPassOptions &reshard,
                                  const std::optional<MutateCollectivePassOptions> &mutation,
                                  const SplitBackwardPassOptions &backward) {
  // Before reshards become collectives, as this pass makes reshards of its own.
  manager.addPass(createBalanceSequencesPass());
  // On whole tensors, which still have their shardings.
  manager.addPass(createReshardToCollectivesPass(reshard));
  // Shardings end here; collectives keep the mesh and axes that they need.
  manager.addPass(createLocalizePass());
  // While a sum between ranks is still one op, as turns add no such sums.
  manager.addPass(createExpandPermutationsPass());
  if (mutation) {
    manager.addPass(createMutateCollectivePass(*mutation));
  }
  if (reshard.narrowReductions) {
    // Before log-sum-exps of the loss become sums, which stay in float32.
    manager.addPass(createNarrowReductionsPass());
  }
  // As each op stands for one reduction until here.
  manager.addPass(createExpandLogSumExpPass());
  // When collectives are ops, which belong to one part or the other, and before kernels join ops of
  // both. In this phase, as the table is proven function by function against its result.
  manager.addPass(createSplitBackwardPass(backward));
  manager.addPass(createVerifyPartitionPass());
}
