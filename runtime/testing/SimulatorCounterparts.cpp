//===- SimulatorCounterparts.cpp - the host's code of a device's kernels --===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "testing/SimulatorCounterparts.h"

#include <algorithm>

using namespace weft::rt;
using namespace weft::rt::cuda;

static Counterpart describe(const Program &program, const Instruction &instruction) {
  Counterpart counterpart;
  counterpart.coordinateBytes = program.mesh.size() * sizeof(int64_t);
  size_t count = program.kernels[instruction.target].operandCount(instruction);
  for (const Operand &operand : std::span(instruction.operands).first(count)) {
    counterpart.operands.push_back({program.buffers[operand.buffer].bytes, operand.access});
  }
  counterpart.immediates = instruction.immediates.size();
  return counterpart;
}

Counterparts::Counterparts(std::span<const Program> programs, const KernelCode *kernels)
    : cores(programs.front().threadsPerRank) {
  for (const Program &program : programs) {
    add(program, kernels);
  }
}

void Counterparts::add(const Program &program, const KernelCode *kernels) {
  for (const Body &body : program.bodies) {
    for (const Instruction &instruction : body.instructions) {
      if (instruction.opcode != Opcode::Kernel) {
        continue;
      }
      const KernelCode &code = kernels[instruction.target];
      Counterpart counterpart = describe(program, instruction);
      counterpart.function = code.function;
      int64_t phases = code.device ? code.device->phaseCount : code.phaseCount;
      const int64_t *launched = code.device ? code.device->iterations : code.iterations;
      int64_t left = std::count_if(launched, launched + phases, [](int64_t n) { return n > 0; });
      int64_t begin = 0; // The next of the host's phases.
      for (int64_t phase = 0; phase < phases; ++phase) {
        left -= launched[phase] > 0;
        int64_t end = launched[phase] == 0 ? begin
                      : left == 0          ? code.phaseCount
                                           : std::min(begin + 1, code.phaseCount);
        counterpart.phase = begin;
        counterpart.iterations.assign(code.iterations + begin, code.iterations + end);
        counterpart.threads = code.device ? uint32_t(code.device->threads[phase]) : 0;
        entries.emplace(program.kernels[instruction.target].name + "_phase_" +
                            std::to_string(phase),
                        counterpart);
        begin = end;
      }
    }
  }
}
