//===- Streams.cpp - communication beside computation --------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Schedule/Streams.h"

#include "weft/Schedule/Frames.h"
#include "weft/Schedule/Lifetimes.h"
#include "weft/Schedule/Timeline.h"

#include <algorithm>

using namespace weft;
using namespace weft::schedule;

static bool usesStreams(const rt::Body &body) {
  return std::any_of(
      body.instructions.begin(), body.instructions.end(),
      [](const rt::Instruction &instruction) { return instruction.stream != rt::Stream::Compute; });
}

/// Gives every buffer bytes of its own, so that only data dependences order instructions.
static void separateBuffers(rt::Program &program) {
  uint64_t end = 0;
  for (rt::Buffer &buffer : program.buffers) {
    if (!buffer.frameSet) {
      buffer.offset = end;
      end += (buffer.bytes + rt::kAlignment - 1) / rt::kAlignment * rt::kAlignment;
    }
  }
  for (rt::FrameSet &set : program.frameSets) {
    std::ranges::fill(set.offsets, end);
    end += set.bytes;
  }
}

static void setAllWaits(rt::Program &program) {
  for (uint32_t body = 0; body < program.bodies.size(); ++body) {
    setWaits(program, body);
  }
}

/// Extends the lifetimes of buffers that collectives beside computation use to the collectives'
/// predicted ends. `begin` is the instant of the first instruction.
static void extendLifetimes(const rt::Program &program, std::span<const rt::Instruction> body,
                            int64_t begin, const std::vector<size_t> &entries,
                            ArenaProblem &problem) {
  std::vector<TimeSpan> times = predictTimes(body);
  for (size_t i = 0; i < body.size(); ++i) {
    if (body[i].stream == rt::Stream::Compute) {
      continue;
    }
    double end = times[i].end + (kMargin - 1) * body[i].cost.seconds;
    size_t last = i;
    for (size_t j = i + 1; j < body.size(); ++j) {
      if (body[j].stream == rt::Stream::Compute) {
        if (times[j].begin >= end) {
          break;
        }
        last = j;
      }
    }
    for (const rt::Operand &operand : body[i].operands) {
      if (!program.buffers[operand.buffer].persistent) {
        int64_t &until = problem.buffers[entries[operand.buffer]].last;
        until = std::max(until, begin + int64_t(last));
      }
    }
  }
}

void weft::schedule::assignStreams(rt::Program &program) {
  for (rt::Body &body : program.bodies) {
    orderForStreams(program, body.instructions);
  }
  if (std::none_of(program.bodies.begin(), program.bodies.end(), usesStreams)) {
    return;
  }
  takeScratchFromFrames(program); // It is placed anew, for the new order.
  const std::vector<rt::FrameSet> frameSets = program.frameSets;
  separateBuffers(program);
  setAllWaits(program);
  program.frameSets = frameSets;
  placeScratchInFrames(program);
  ArenaProblem problem = makeArenaProblem(program); // Frames are needed as early as their scratch.
  const std::vector<size_t> entries = findEntries(program);
  int64_t begin = 0;
  for (const rt::Body &body : program.bodies) {
    extendLifetimes(program, body.instructions, begin, entries, problem);
    begin += int64_t(body.instructions.size());
  }
  placeBuffers(program, packArena(problem));
  setAllWaits(program);
}
