//===- StandInTwins.cpp - what a device's kernels do, on the host --------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "testing/StandInTwins.h"

#include <algorithm>

using namespace weft::rt;
using namespace weft::rt::cuda;

static Twin describe(const Program &program, const Instruction &instruction) {
  Twin twin;
  twin.coordinateBytes = program.mesh.size() * sizeof(int64_t);
  size_t count = program.kernels[instruction.target].operandCount(instruction);
  for (const Operand &operand : std::span(instruction.operands).first(count)) {
    twin.operands.push_back({program.buffers[operand.buffer].bytes, operand.access});
  }
  twin.immediates = instruction.immediates.size();
  return twin;
}

Twins::Twins(const Program &program, const KernelCode *kernels) : cores(program.threadsPerRank) {
  for (const auto *section : {&program.init, &program.step, &program.evaluate}) {
    for (const Instruction &instruction : *section) {
      if (instruction.opcode != Opcode::Kernel) {
        continue;
      }
      const KernelCode &code = kernels[instruction.target];
      Twin twin = describe(program, instruction);
      twin.function = code.function;
      int64_t phases = code.device ? code.device->phaseCount : code.phaseCount;
      for (twin.phase = 0; twin.phase < phases; ++twin.phase) {
        int64_t begin = std::min(twin.phase, code.phaseCount);
        int64_t end =
            twin.phase + 1 < phases ? std::min(begin + 1, code.phaseCount) : code.phaseCount;
        twin.iterations.assign(code.iterations + begin, code.iterations + end);
        twin.threads = code.device ? uint32_t(code.device->threads[twin.phase]) : 0;
        entries.emplace(program.kernels[instruction.target].name + "_phase_" +
                            std::to_string(twin.phase),
                        twin);
      }
    }
  }
}
