//===- Timeline.cpp - when the instructions of a section run ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Schedule/Timeline.h"

#include <algorithm>
#include <array>

using namespace weft;
using namespace weft::schedule;

std::vector<TimeSpan> weft::schedule::predictTimes(std::span<const rt::Instruction> body) {
  std::array<double, rt::kStreams> streams = {};
  double links = 0;
  std::vector<TimeSpan> times;
  times.reserve(body.size());
  for (const rt::Instruction &instruction : body) {
    double &stream = streams[size_t(instruction.stream)];
    for (uint32_t other : instruction.waits) {
      stream = std::max(stream, times[other].end);
    }
    if (instruction.opcode == rt::Opcode::Collective) {
      stream = links = std::max(stream, links);
      links += instruction.cost.seconds;
    }
    times.push_back({stream, stream + instruction.cost.seconds});
    stream = times.back().end;
    if (instruction.opcode == rt::Opcode::Observe && instruction.cost.seconds > 0) {
      // Ranks agree whether to go on; no instruction is issued before.
      for (double &other : streams) {
        other = std::max(other, times.back().end);
      }
    }
  }
  return times;
}

double weft::schedule::predictSeconds(std::span<const rt::Instruction> body) {
  double seconds = 0;
  for (const TimeSpan &time : predictTimes(body)) {
    seconds = std::max(seconds, time.end);
  }
  return seconds;
}

double weft::schedule::predictSeconds(const rt::Program &program,
                                      const std::vector<rt::Action> &section) {
  std::vector<double> ofBody;
  for (const rt::Body &body : program.bodies) {
    ofBody.push_back(predictSeconds(body.instructions));
  }
  double seconds = 0;
  for (const rt::Action &action : section) {
    seconds += ofBody[action.body];
  }
  return seconds;
}
