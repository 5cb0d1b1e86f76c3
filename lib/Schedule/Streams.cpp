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
#include <numeric>

using namespace weft;
using namespace weft::schedule;

static bool isComputed(const rt::Instruction &instruction) {
  return instruction.stream == rt::Stream::Compute;
}

static bool usesStreams(const rt::Body &body) {
  return !std::ranges::all_of(body.instructions, isComputed);
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

std::vector<int64_t> weft::schedule::predictLastBeside(std::span<const rt::Instruction> body) {
  std::vector<int64_t> lasts(body.size());
  std::iota(lasts.begin(), lasts.end(), 0);
  if (std::ranges::all_of(body, isComputed)) {
    return lasts;
  }
  const std::vector<TimeSpan> times = predictTimes(body);
  for (size_t i = 0; i < body.size(); ++i) {
    const double end = times[i].end + (kMargin - 1) * body[i].cost.seconds;
    for (size_t j = i + 1; !isComputed(body[i]) && j < body.size(); ++j) {
      if (isComputed(body[j])) {
        if (times[j].begin >= end) {
          break;
        }
        lasts[i] = int64_t(j);
      }
    }
  }
  return lasts;
}

/// Extends the lifetimes of buffers that collectives beside computation use to the collectives'
/// predicted ends. `begin` is the instant of the first instruction.
static void extendLifetimes(const rt::Program &program, std::span<const rt::Instruction> body,
                            int64_t begin, const std::vector<size_t> &entries,
                            ArenaProblem &problem) {
  const std::vector<int64_t> lasts = predictLastBeside(body);
  for (size_t i = 0; i < body.size(); ++i) {
    for (const rt::Operand &operand : body[i].operands) {
      if (!isComputed(body[i]) && !program.buffers[operand.buffer].persistent) {
        int64_t &until = problem.buffers[entries[operand.buffer]].last;
        until = std::max(until, begin + lasts[i]);
      }
    }
  }
}

void weft::schedule::assignStreams(rt::Program &program, double leastGain) {
  for (rt::Body &body : program.bodies) {
    orderForStreams(program, body.instructions, leastGain);
  }
  if (std::none_of(program.bodies.begin(), program.bodies.end(), usesStreams)) {
    return;
  }
  takeScratchFromFrames(program);
  separateBuffers(program);
  setAllWaits(program);
  packFrames(program);                              // Anew, for the new order.
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
