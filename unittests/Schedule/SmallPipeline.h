//===- SmallPipeline.h - a step of two pipeline stages ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_UNITTESTS_SCHEDULE_SMALLPIPELINE_H
#define WEFT_UNITTESTS_SCHEDULE_SMALLPIPELINE_H

#include "weft-rt/Program.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <string>
#include <vector>

namespace weft::test {

/// The modules after Schedule of all stages, and their programs.
struct CompiledStages {
  std::vector<mlir::OwningOpRef<mlir::ModuleOp>> modules;
  rt::Programs programs;
};

/// Compiles modules of pipeline stages.
class SmallPipeline {
public:
  SmallPipeline();

  /// A module as Partition leaves it: stage s multiplies by @ws, stage 1 sums up the loss, and
  /// what both are assigned comes back through it. Value %tM is what stage 0 sends of micro-batch
  /// M, and %uM what stage 1 sends back.
  static std::string text(int64_t microBatches);

  mlir::OwningOpRef<mlir::ModuleOp> parse(const std::string &text);
  /// Takes all stages of the module, with as many micro-batches. Without a schedule their order is
  /// that of micro-batches. Returns nothing, and fails the test, if that is impossible.
  CompiledStages compile(const std::string &text, int64_t microBatches, const std::string &schedule,
                         int64_t stageCount = 2, int64_t samplesOfMicroBatch = 1);

  mlir::MLIRContext context;

private:
  mlir::LogicalResult take(mlir::ModuleOp module, int64_t stage, const std::string &schedule);
};

} // namespace weft::test

#endif // WEFT_UNITTESTS_SCHEDULE_SMALLPIPELINE_H
