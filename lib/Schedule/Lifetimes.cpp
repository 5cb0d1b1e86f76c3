//===- Lifetimes.cpp - lifetimes of the buffers of a program --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Schedule/Lifetimes.h"

#include <algorithm>

using namespace weft;
using namespace weft::schedule;

ArenaProblem weft::schedule::makeArenaProblem(const rt::Program &program) {
  ArenaProblem problem;
  problem.alignment = rt::kAlignment;
  problem.buffers.resize(program.buffers.size());
  int64_t end =
      static_cast<int64_t>(program.init.size() + program.step.size() + program.evaluate.size());
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    problem.buffers[i].bytes = program.buffers[i].bytes;
    problem.alignment = std::max(problem.alignment, program.buffers[i].alignment());
    if (program.buffers[i].persistent) {
      problem.buffers[i].first = 0;
      problem.buffers[i].last = std::max<int64_t>(end - 1, 0);
    }
  }
  int64_t time = 0;
  for (const std::vector<rt::Instruction> *section :
       {&program.init, &program.step, &program.evaluate}) {
    for (const rt::Instruction &instruction : *section) {
      for (const rt::Operand &operand : instruction.operands) {
        if (operand.buffer >= program.buffers.size() ||
            program.buffers[operand.buffer].persistent) {
          continue;
        }
        ArenaBuffer &buffer = problem.buffers[operand.buffer];
        if (buffer.first > buffer.last) {
          buffer.first = time;
        }
        buffer.last = time;
      }
      ++time;
    }
  }
  return problem;
}

ArenaPlan weft::schedule::currentPlan(const rt::Program &program) {
  ArenaPlan plan;
  plan.bytes = program.arenaBytes;
  plan.offsets.reserve(program.buffers.size());
  for (const rt::Buffer &buffer : program.buffers) {
    plan.offsets.push_back(buffer.offset);
  }
  return plan;
}

void weft::schedule::placeBuffers(rt::Program &program, const ArenaPlan &plan) {
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    program.buffers[i].offset = plan.offsets[i];
  }
  program.arenaBytes = plan.bytes;
}

void weft::schedule::packArena(rt::Program &program) {
  placeBuffers(program, packArena(makeArenaProblem(program)));
}

ArenaReport weft::schedule::reportArena(const rt::Program &program) {
  return {arenaLowerBound(makeArenaProblem(program)), program.arenaBytes};
}
