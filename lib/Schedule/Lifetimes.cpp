//===- Lifetimes.cpp - lifetimes of the buffers of a program --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Schedule/Lifetimes.h"

#include "weft-rt/BufferLives.h"
#include "weft-rt/BufferPlaces.h"
#include "weft/Schedule/Frames.h"

#include <algorithm>
#include <optional>

using namespace weft;
using namespace weft::schedule;

std::vector<size_t> weft::schedule::findEntries(const rt::Program &program) {
  const std::vector<size_t> sections = findSectionsOfSets(program);
  std::vector<size_t> entries;
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    std::optional<uint32_t> set = program.buffers[i].frameSet;
    entries.push_back(set ? program.buffers.size() + sections[*set] : i);
  }
  return entries;
}

ArenaProblem weft::schedule::makeArenaProblem(const rt::Program &program) {
  ArenaProblem problem;
  problem.alignment = rt::alignmentOf(program);
  for (const rt::Buffer &buffer : program.buffers) {
    problem.buffers.push_back({buffer.bytes});
  }
  for (const FrameRegion &region : findFrameRegions(program)) {
    problem.buffers.push_back({region.end - region.begin});
  }
  const std::vector<size_t> entries = findEntries(program);
  const rt::BufferLives found = rt::findBufferLives(program);
  const rt::BufferPlaces places(program);
  for (size_t i = 0; i < places.size(); ++i) {
    auto [first, last] = found.lives[i];
    ArenaBuffer &entry = problem.buffers[entries[places[i].buffer]];
    if (first <= last) {
      bool isFirst = entry.first > entry.last;
      entry.first = isFirst ? first : std::min(entry.first, first);
      entry.last = std::max(entry.last, last);
    }
  }
  return problem;
}

void weft::schedule::placeBuffers(rt::Program &program, const ArenaPlan &plan) {
  const std::vector<size_t> sections = findSectionsOfSets(program);
  const auto regions = findFrameRegions(program);
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    if (!program.buffers[i].frameSet) {
      program.buffers[i].offset = plan.offsets[i];
    }
  }
  for (size_t i = 0; i < program.frameSets.size(); ++i) {
    for (uint64_t &offset : program.frameSets[i].offsets) {
      offset += plan.offsets[program.buffers.size() + sections[i]] - regions[sections[i]].begin;
    }
  }
  program.arenaBytes = plan.bytes;
}

void weft::schedule::packArena(rt::Program &program) {
  packFrames(program);
  placeBuffers(program, packArena(makeArenaProblem(program)));
}
