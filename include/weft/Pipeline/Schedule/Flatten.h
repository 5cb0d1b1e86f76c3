//===- Flatten.h - from the module to the instruction table ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PIPELINE_SCHEDULE_FLATTEN_H
#define WEFT_PIPELINE_SCHEDULE_FLATTEN_H

#include "weft-rt/Program.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace weft {

/// What a program says of itself besides its instructions; see the fields of `rt::Program` of
/// the same names. What a program says of the machine, later steps add (BuildProgram.h).
struct ProgramInfo {
  std::string modelName, planText, planHash;
  int64_t globalBatch = 0, microBatches = 1, sequenceLength = 0, vocabulary = 0;
  std::optional<int64_t> documentEnd;
  int64_t defaultSteps = 0;
  uint64_t defaultSeed = 0;
  double stepFlops = 0;
};

/// Writes the table of a module that `verify-schedule` accepts: dissolves calls, gives every
/// value a buffer, and packs the arena. Calls of a section for micro-batches that repeat one
/// another become actions of one body: what one of them passes on lies where the next one expects
/// it. Values that a launch ties share one buffer; so do a variable's old and new value, and what
/// an all-reduce sums, or a matmul adds to, with the result, if it is not needed afterwards.
/// Kernels are listed by their function names. An instruction's cost is what its op's `getCost`
/// says of one rank's tensors, without a time. An instruction's label is "layers.3/attention.query
/// (contract)": the labels of the calls that lead to it, the name of its location if it has one,
/// and the op.
///
/// Nothing is proven yet: `certifyPrograms` (BuildProgram.h) does that when the table is complete.
/// Fails with errors at the ops concerned.
mlir::FailureOr<rt::Program> flatten(mlir::ModuleOp module, const ProgramInfo &info);

} // namespace weft

#endif // WEFT_PIPELINE_SCHEDULE_FLATTEN_H
