//===- BuildProgram.h - the steps from a scheduled module to its program --===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// After the last pass of Schedule a module becomes a program, and one with pipeline stages becomes
// a program for each. `flatten` (Flatten.h) writes the instruction table, and each step after it
// adds one thing to that table:
//
//   describe-device   the rates of the machine's devices, which a run compares its own with
//   predict-times     the predicted time of every instruction
//   predict-memory    the memory that a device needs beside the arena
//   use-streams       streams, order and waits, so that collectives run beside computation
//
// `predict-memory` is for targets that have devices. BuildProgram.cpp states the order once, with
// the reasons. `weft-translate --program-to-text --program-steps=NAMES` runs the named steps.
//
// Steps keep no state: any thread may run one, on a program of its own.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PIPELINE_SCHEDULE_BUILDPROGRAM_H
#define WEFT_PIPELINE_SCHEDULE_BUILDPROGRAM_H

#include "weft/Description/Machine.h"
#include "weft/Pipeline/Schedule/Flatten.h"
#include "weft/Pipeline/Target.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace weft {

/// What the steps read besides the program. It owns nothing.
struct ProgramContext {
  /// The module that the program was flattened from. Errors are reported on it.
  mlir::ModuleOp module;
  /// Has at least as many devices as the program has ranks.
  const desc::MachineSpec &machine;
  /// The format that the recipe multiplies matrices in.
  desc::Precision precision = desc::Precision::F32;
  TargetKind target = TargetKind::Cuda;
};

/// One step after `flatten`. A step that fails has reported an error on the module, and leaves a
/// program that is of no use.
struct ProgramStep {
  llvm::StringLiteral name;
  /// "predict the time of every instruction": completes a sentence that begins with "to".
  llvm::StringLiteral description;
  /// Whether only targets with devices take this step.
  bool isForDevices;
  mlir::LogicalResult (*run)(rt::Program &program, const ProgramContext &context);
};

/// All steps after `flatten`, in the order in which they must run.
llvm::ArrayRef<ProgramStep> programSteps();

/// Proves the program of one rank class by itself, or those of all classes together
/// (`weft/Schedule/Proof.h`), and notes the certificate in each. They come from `module`. Fails
/// with an error on the module if the proof does not hold.
mlir::LogicalResult certifyPrograms(mlir::ModuleOp module, rt::Programs &programs);

/// Flattens `context.module`, or each of its stages' modules, and runs all steps that `target`
/// takes. Returns the programs of one executable, in the order of stages, proven together. Fails
/// with errors on a module or its ops. REQUIRES: `verify-schedule` accepts the modules.
mlir::FailureOr<rt::Programs> buildPrograms(const ProgramInfo &info, const ProgramContext &context,
                                            TargetKind target);

} // namespace weft

#endif // WEFT_PIPELINE_SCHEDULE_BUILDPROGRAM_H
