//===- Timeline.h - when the instructions of a section run -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A section's predicted course, from the time that each instruction takes by itself.
// Streams run beside one another; an instruction begins when those before it on its
// stream and those that it waits for have ended. An observation that takes time ends the
// step or not, so nothing is issued before it has ended. Collectives share the links between
// devices, so they take them one after another, in the order of issue, whatever their
// streams: what two at a time would win is not known, and a communicator allows only one.
// That computation is slower beside communication is not predicted.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_SCHEDULE_TIMELINE_H
#define WEFT_SCHEDULE_TIMELINE_H

#include "weft-rt/Program.h"

#include <span>
#include <vector>

namespace weft::schedule {

/// Seconds from the beginning of the section.
struct TimeSpan {
  double begin = 0, end = 0;
};

/// One span for each instruction. REQUIRES: waits name earlier instructions.
std::vector<TimeSpan> predictTimes(std::span<const rt::Instruction> section);

/// Until all streams have ended; on one stream the sum of what instructions take, in order.
double predictSeconds(std::span<const rt::Instruction> section);

} // namespace weft::schedule

#endif // WEFT_SCHEDULE_TIMELINE_H
