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
                                  const std::optional<MutateCollectivePassOptions> &mutation) {
  // Before anything moves: it makes reshards of its own.
  manager.addPass(createBalanceSequencesPass());
  // On whole tensors, where a value still knows how it lies.
  manager.addPass(createReshardToCollectivesPass(reshard));
  // Shardings end here; collectives keep the mesh and axes that they need.
  manager.addPass(createLocalizePass());
  // While a sum between ranks is still one op: turns add none.
  manager.addPass(createExpandPermutationsPass());
  if (mutation) {
    manager.addPass(createMutateCollectivePass(*mutation));
  }
  if (reshard.narrowReductions) {
    // Before the loss's logarithm becomes a sum, which stays in float32.
    manager.addPass(createNarrowReductionsPass());
  }
  // Last, because until here one op stands for one reduction.
  manager.addPass(createExpandLogSumExpPass());
  manager.addPass(createVerifyPartitionPass());
}
