//===- Lifetimes.cpp - lifetimes of the buffers of a program --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Schedule/Lifetimes.h"

#include "weft-rt/BufferLives.h"
#include "weft-rt/BufferPlaces.h"

#include <algorithm>
#include <optional>

using namespace weft;
using namespace weft::schedule;

ArenaProblem weft::schedule::makePlaceProblem(const rt::Program &program) {
  ArenaProblem problem;
  problem.alignment = rt::alignmentOf(program);
  rt::BufferLives found = rt::findBufferLives(program);
  rt::BufferPlaces places(program);
  for (size_t i = 0; i < places.size(); ++i) {
    problem.buffers.push_back(
        {places[i].end - places[i].begin, found.lives[i].first, found.lives[i].last});
  }
  return problem;
}

ArenaPlan weft::schedule::currentPlan(const rt::Program &program) {
  ArenaPlan plan;
  plan.bytes = program.arenaBytes;
  rt::BufferPlaces places(program);
  for (size_t i = 0; i < places.size(); ++i) {
    plan.offsets.push_back(places[i].begin);
  }
  return plan;
}

size_t weft::schedule::entryOf(const rt::Program &program, uint32_t buffer) {
  std::optional<uint32_t> set = program.buffers[buffer].frameSet;
  return set ? program.buffers.size() + *set : buffer;
}

ArenaProblem weft::schedule::makeArenaProblem(const rt::Program &program) {
  ArenaProblem problem;
  problem.alignment = rt::alignmentOf(program);
  rt::BufferLives found = rt::findBufferLives(program);
  rt::BufferPlaces places(program);
  for (const rt::Buffer &buffer : program.buffers) {
    problem.buffers.push_back({buffer.bytes});
  }
  for (const rt::FrameSet &set : program.frameSets) {
    problem.buffers.push_back({set.count * set.bytes});
  }
  for (size_t i = 0; i < places.size(); ++i) {
    auto [first, last] = found.lives[i];
    ArenaBuffer &entry = problem.buffers[entryOf(program, places[i].buffer)];
    if (first <= last) {
      bool isFirst = entry.first > entry.last;
      entry.first = isFirst ? first : std::min(entry.first, first);
      entry.last = std::max(entry.last, last);
    }
  }
  return problem;
}

void weft::schedule::placeBuffers(rt::Program &program, const ArenaPlan &plan) {
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    if (!program.buffers[i].frameSet) {
      program.buffers[i].offset = plan.offsets[i];
    }
  }
  for (size_t i = 0; i < program.frameSets.size(); ++i) {
    program.frameSets[i].offset = plan.offsets[program.buffers.size() + i];
  }
  program.arenaBytes = plan.bytes;
}

void weft::schedule::layOutFrames(rt::Program &program) {
  uint64_t alignment = rt::alignmentOf(program);
  for (rt::FrameSet &set : program.frameSets) {
    set.bytes = 0;
  }
  for (rt::Buffer &buffer : program.buffers) {
    if (buffer.frameSet) {
      rt::FrameSet &set = program.frameSets[*buffer.frameSet];
      buffer.offset = set.bytes;
      set.bytes += (buffer.bytes + alignment - 1) / alignment * alignment;
    }
  }
}

void weft::schedule::packArena(rt::Program &program) {
  layOutFrames(program);
  placeBuffers(program, packArena(makeArenaProblem(program)));
}

ArenaReport weft::schedule::reportArena(const rt::Program &program) {
  return {arenaLowerBound(makePlaceProblem(program)), program.arenaBytes};
}
