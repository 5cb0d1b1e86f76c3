//===- Passes.h - from shardings to the code of one rank ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PIPELINE_PARTITION_PASSES_H
#define WEFT_PIPELINE_PARTITION_PASSES_H

#include "weft/Dialect/Weft/IR/Weft.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

namespace weft {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "weft/Pipeline/Partition/Passes.h.inc"

/// Appends the passes of the phase, in order. `mutation`, only for tests of tests, plants a
/// mistake.
void buildPartitionPipeline(mlir::OpPassManager &manager,
                            const ReshardToCollectivesPassOptions &reshard,
                            const std::optional<MutateCollectivePassOptions> &mutation,
                            const SplitBackwardPassOptions &backward);

} // namespace weft

#endif // WEFT_PIPELINE_PARTITION_PASSES_H
