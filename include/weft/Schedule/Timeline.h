//===- Timeline.h - when the instructions of a body run -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Predicts when the instructions of a body run, from the time that each takes by itself.
// Streams run concurrently; an instruction begins when its predecessors on its stream and the
// instructions that it waits for have ended. An observation that takes time may end the step,
// so no instruction is issued before it has ended. Collectives share the links between
// devices, so they run one after another, in the order of issue, whatever their streams: the
// gain of two at a time is unknown, and a communicator allows only one. The prediction ignores
// that communication slows down concurrent computation.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_SCHEDULE_TIMELINE_H
#define WEFT_SCHEDULE_TIMELINE_H

#include "weft-rt/Program.h"

#include <span>
#include <vector>

namespace weft::schedule {

/// In seconds since the beginning of the body.
struct TimeSpan {
  double begin = 0, end = 0;
};

/// Returns one span for each instruction. REQUIRES: waits name earlier instructions.
std::vector<TimeSpan> predictTimes(std::span<const rt::Instruction> body);

/// Returns the seconds until all streams have ended; on one stream, the sum of all instructions'
/// times, added in order.
double predictSeconds(std::span<const rt::Instruction> body);

/// Returns the seconds of a section: streams join at the end of each action.
double predictSeconds(const rt::Program &program, const std::vector<rt::Action> &section);

} // namespace weft::schedule

#endif // WEFT_SCHEDULE_TIMELINE_H
