//===- Lifetimes.cpp - lifetimes of the buffers of a program --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Schedule/Lifetimes.h"

#include "weft-rt/BufferLives.h"

#include <algorithm>

using namespace weft;
using namespace weft::schedule;

ArenaProblem weft::schedule::makeArenaProblem(const rt::Program &program) {
  ArenaProblem problem;
  problem.alignment = rt::kAlignment;
  rt::BufferLives found = rt::findBufferLives(program);
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    problem.buffers.push_back(
        {program.buffers[i].bytes, found.lives[i].first, found.lives[i].last});
    problem.alignment = std::max(problem.alignment, program.buffers[i].alignment());
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
