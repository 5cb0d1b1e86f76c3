//===- BuildProgram.cpp - the steps to a program, with the reasons --------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Pipeline/Schedule/BuildProgram.h"

#include "weft/Cost/PredictProgram.h"
#include "weft/Dialect/Weft/IR/StageMarks.h"
#include "weft/Pipeline/Schedule/ShareKernels.h"
#include "weft/Schedule/Proof.h"
#include "weft/Schedule/Streams.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace weft;

namespace {

LogicalResult describeDevice(rt::Program &program, const ProgramContext &context) {
  const desc::DeviceSpec &device = context.machine.device;
  program.memoryBandwidthPerRank = device.memoryBandwidth;
  program.threadsPerRank = device.cores;
  if (program.stepFlops <= 0) {
    return success(); // Without operations a peak would give a share of it that is none.
  }
  program.peakFlopsPerRank = device.peakFlops(context.precision).value_or(0);
  if (llvm::any_of(program.matmuls, std::mem_fn(&rt::Matmul::isFp8))) {
    program.peakByteFlopsPerRank = device.peakFlopsF8.value_or(0);
  }
  return success();
}

LogicalResult predictTimes(rt::Program &program, const ProgramContext &context) {
  cost::predictProgram(program, context.machine);
  return success();
}

LogicalResult predictMemory(rt::Program &program, const ProgramContext &context) {
  cost::predictDevice(program, context.machine.device.cuda);
  return success();
}

/// Leaves programs for hosts in line on machines of CUDA devices: how fast their hosts move bytes
/// is unknown, and such programs only rehearse.
LogicalResult useStreams(rt::Program &program, const ProgramContext &context) {
  if (context.target == TargetKind::Cuda) {
    schedule::assignStreams(program);
  } else if (!context.machine.device.cuda.isGiven()) {
    schedule::assignStreams(program, schedule::kLeastGainOnHosts);
  }
  return success();
}

constexpr ProgramStep kSteps[] = {
    // Of the machine's file alone; the matmuls of the table say whether FP8 counts.
    {"describe-device", "note the rates of the machine's devices", false, describeDevice},
    // Before streams, which depend on how long collectives and kernels take.
    {"predict-times", "predict the time of every instruction", false, predictTimes},
    {"predict-memory", "predict the memory of a device beside the arena", true, predictMemory},
    // Last, because it moves instructions and buffers.
    {"use-streams", "let collectives run beside computation", false, useStreams},
};

} // namespace

llvm::ArrayRef<ProgramStep> weft::programSteps() { return kSteps; }

/// Returns the program of one module.
static FailureOr<rt::Program> buildProgram(const ProgramInfo &info, const ProgramContext &context) {
  FailureOr<rt::Program> program = flatten(context.module, info);
  if (failed(program)) {
    return failure();
  }
  for (const ProgramStep &step : programSteps()) {
    bool isTaken = !step.isForDevices || context.target == TargetKind::Cuda;
    if (isTaken && failed(step.run(*program, context))) {
      return failure();
    }
  }
  return program;
}

LogicalResult weft::certifyPrograms(ModuleOp module, rt::Programs &programs) {
  schedule::Proof proof =
      programs.size() == 1 ? schedule::prove(programs.front()) : schedule::prove(programs);
  if (!proof.holds()) {
    // Not `module.emitError`, which would print all of it.
    InFlightDiagnostic error =
        emitError(module.getLoc(), "internal error: the program cannot be proven");
    for (const std::string &message : proof.diagnostics) {
      error.attachNote() << message;
    }
    return error;
  }
  for (rt::Program &program : programs) {
    program.certificate = proof.certificate;
  }
  return success();
}

FailureOr<rt::Programs> weft::buildPrograms(const ProgramInfo &info, const ProgramContext &context,
                                            TargetKind target) {
  rt::Programs programs;
  SmallVector<ModuleOp> stages = stageModulesOf(context.module);
  if (failed(verifySharedKernels(stages))) {
    return failure();
  }
  for (ModuleOp stage : stages) {
    FailureOr<rt::Program> built =
        buildProgram(info, {stage, context.machine, context.precision, target});
    if (failed(built)) {
      return failure();
    }
    programs.push_back(std::move(*built));
  }
  shareKernelTable(programs);
  if (failed(certifyPrograms(context.module, programs))) {
    return failure();
  }
  return programs;
}
