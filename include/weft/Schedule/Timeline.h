//===- Timeline.h - when the instructions of a section run --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Predicts when instructions run, from the time that each takes by itself. Streams run
// concurrently; an instruction begins when its predecessors on its stream and the instructions
// that it waits for have ended. Where ranks agree to go on the step may end, so no
// instruction is issued before they have. Collectives share the links between devices, so
// they run one after another, in the order of issue, whatever their streams: the gain of two at
// a time is unknown, and a communicator allows only one. Computation beside a collective is slower
// by the share of the device's rate that the collective takes, as its kernels occupy
// multiprocessors, or its copies a host's processors.
//
// The ranks of a class run in step, so one stands for all. Classes wait for each other where
// they come together: a collective across classes, or the agreement to go on, begins when all its
// classes have come to it, and ends for all at once. A sender, too, waits for its receiver.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_SCHEDULE_TIMELINE_H
#define WEFT_SCHEDULE_TIMELINE_H

#include "weft-rt/Program.h"

#include <functional>
#include <span>
#include <vector>

namespace weft::schedule {

/// In seconds since the beginning of the body or section.
struct TimeSpan {
  double begin = 0, end = 0;
};

/// When an instruction runs, and when its class came to it: earlier if it then waited for others.
struct InstructionSpan : TimeSpan {
  double arrival = 0;
};

/// Receives the spans of all instructions of an action, by the numbers of its class and of the
/// action, in the order of actions.
using ActionVisitor = std::function<void(uint32_t rankClass, size_t action,
                                         std::span<const InstructionSpan> instructions)>;

/// What a rank class does in a section.
struct ClassCourse {
  /// When each action runs. One begins where the one before it ends.
  std::vector<TimeSpan> actions;
  /// When the class waits for others, in order. These times are part of those of actions.
  std::vector<TimeSpan> waits;

  double end() const { return actions.empty() ? 0 : actions.back().end; }
  /// Returns the seconds in which it works.
  double busy() const;
};

/// Returns one span for each instruction. REQUIRES: waits name earlier instructions.
std::vector<TimeSpan> predictTimes(std::span<const rt::Instruction> body);

/// Returns the seconds until all streams have ended; on one stream, the sum of all instructions'
/// times, added in order.
double predictSeconds(std::span<const rt::Instruction> body);

/// Returns the course of a section, such as `&rt::Program::step`, in each class. Streams join at
/// the end of each action. Takes time in proportion to the instructions of the section; an action
/// without a rendezvous only that of looking up its body, unless there is a visitor.
///
/// REQUIRES: these are the programs of all classes, proven together. Or it is the program of one
/// class, which waits for no other.
std::vector<ClassCourse> predictCourse(std::span<const rt::Program> programs,
                                       const std::vector<rt::Action> rt::Program::*section,
                                       const ActionVisitor &visit = {});

/// Returns the seconds until all classes have ended the section.
double predictSeconds(std::span<const rt::Program> programs,
                      const std::vector<rt::Action> rt::Program::*section);

} // namespace weft::schedule

#endif // WEFT_SCHEDULE_TIMELINE_H
