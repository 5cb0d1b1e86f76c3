//===- FrameScratch.cpp - what lies in frames that are not full -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FrameScratch.h"

#include "weft-rt/BufferPlaces.h"
#include "weft/Schedule/Arena.h"
#include "weft/Schedule/Frames.h"

#include <algorithm>

using namespace weft;
using namespace weft::schedule;

namespace {

class ScratchPlacer {
public:
  ScratchPlacer(rt::Program &program, const BodyNeeds &needs)
      : program(program), alignment(rt::alignmentOf(program)), needs(needs),
        shapes(program, needs) {}

  void run() {
    const std::vector<bool> areOfMicroBatches = findBodiesOfMicroBatches();
    for (uint32_t body = 0; body < program.bodies.size(); ++body) {
      if (areOfMicroBatches[body]) {
        placeScratchOf(body);
      }
    }
  }

private:
  /// Finds the bodies of the sections that have frames, as far as they work on a micro-batch.
  std::vector<bool> findBodiesOfMicroBatches() const {
    std::vector<bool> found(program.bodies.size(), false);
    for (const auto *section : {&program.init, &program.step, &program.evaluate}) {
      const bool hasFrames = std::ranges::any_of(*section, [&](const rt::Action &action) {
        return std::ranges::any_of(needs.uses(action.body), [&](const rt::BufferUse &use) {
          return program.buffers[use.buffer].frameSet.has_value();
        });
      });
      for (const rt::Action &action : *section) {
        found[action.body] = hasFrames && action.microBatch;
      }
    }
    return found;
  }

  void placeScratchOf(uint32_t body) {
    std::set<uint32_t> sets;
    std::vector<const rt::BufferUse *> scratch;
    for (const rt::BufferUse &use : needs.uses(body)) {
      const rt::Buffer &buffer = program.buffers[use.buffer];
      if (buffer.frameSet) {
        sets.insert(*buffer.frameSet);
      } else if (needs.users(use.buffer) == 1 && !use.readsBefore) {
        scratch.push_back(&use);
      }
    }
    std::ranges::sort(scratch, {}, [&](const rt::BufferUse *use) { // The largest first.
      return std::pair(~program.buffers[use->buffer].bytes, use->buffer);
    });
    for (uint32_t set : sets) {
      std::vector<Taken> taken = shapes.find(set, body);
      std::erase_if(scratch, [&](const rt::BufferUse *use) { return place(*use, set, taken); });
    }
    if (!scratch.empty()) {
      makeSetOf(scratch);
    }
  }

  /// Places a buffer at the lowest offset in the frame that is free while the body uses it. Returns
  /// false if there is none.
  bool place(const rt::BufferUse &use, uint32_t set, std::vector<Taken> &taken) {
    rt::Buffer &buffer = program.buffers[use.buffer];
    uint64_t begin = 0;
    for (const Taken &other : taken) {
      const bool meets = other.first <= use.last && use.first <= other.last;
      if (meets && other.begin < begin + buffer.bytes) {
        begin = std::max(begin, (other.end + alignment - 1) / alignment * alignment);
      }
    }
    if (begin + buffer.bytes > program.frameSets[set].bytes) {
      return false;
    }
    buffer.frameSet = set;
    buffer.offset = begin;
    const Taken own = {begin, begin + buffer.bytes, use.first, use.last};
    taken.insert(std::ranges::upper_bound(taken, begin, {}, &Taken::begin), own);
    return true;
  }

  /// Gives a body's scratch a set of its own.
  void makeSetOf(const std::vector<const rt::BufferUse *> &scratch) {
    ArenaProblem problem;
    problem.alignment = alignment;
    for (const rt::BufferUse *use : scratch) {
      problem.buffers.push_back({program.buffers[use->buffer].bytes, use->first, use->last});
    }
    const ArenaPlan plan = packArena(problem);
    for (size_t i = 0; i < scratch.size(); ++i) {
      rt::Buffer &buffer = program.buffers[scratch[i]->buffer];
      buffer.frameSet = uint32_t(program.frameSets.size());
      buffer.offset = plan.offsets[i];
    }
    program.frameSets.emplace_back().bytes = plan.bytes;
  }

  rt::Program &program;
  const uint64_t alignment;
  const BodyNeeds &needs;
  const FrameShapes shapes;
};

} // namespace

void weft::schedule::placeScratchInFrames(rt::Program &program, const BodyNeeds &needs) {
  ScratchPlacer(program, needs).run();
}

void weft::schedule::takeScratchFromFrames(rt::Program &program, const BodyNeeds &needs) {
  uint32_t sets = 0;
  for (uint32_t number = 0; number < program.buffers.size(); ++number) {
    rt::Buffer &buffer = program.buffers[number];
    if (needs.users(number) == 1) {
      buffer.frameSet.reset();
    }
    sets = buffer.frameSet ? std::max(sets, *buffer.frameSet + 1) : sets;
  }
  program.frameSets.resize(sets);
}

void weft::schedule::takeScratchFromFrames(rt::Program &program) {
  takeScratchFromFrames(program, BodyNeeds(program));
}
