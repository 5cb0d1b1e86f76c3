//===- TimeLine.h - the course of steps as a trace --------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Draws when ranks ran which instructions of their steps, as a trace for Perfetto. The compiler
// draws predicted times by it, a run measured ones, so both have the same tracks and names:
//
//   llama-tiny, predicted
//     stage 0, rank 0
//       compute          step 0 > step_forward_0 for micro-batch 3 > layers.1/mlp.up (contract)
//       communication    layers.1 (send)
//       memory in use    bytes
//     stage 1, rank 2
//       ...
//
// The track of a stream has its instructions, and in them the time in which the rank waits for
// others; that of computation has them in actions, and these in steps. An arrow goes from each send
// to its receive, and through the slices of a collective's ranks in the order in which they begin.
// Memory is that of the plan, by instructions.
//
// All functions are pure and may run on any thread.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_REPORT_TIMELINE_H
#define WEFT_RT_REPORT_TIMELINE_H

#include "execution/InstructionTime.h"
#include "report/TraceWriter.h"
#include "weft-rt/Program.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weft::rt {

/// What a time line shows.
struct TimeLineScope {
  /// Ascending.
  std::vector<int64_t> ranks;
  /// Whether it shows instructions, or else only actions, and where ranks wait.
  bool hasInstructions = true;
};

/// Returns the ranks that a text names, such as "0,4-7"; of an empty text, the first of each rank
/// class. Fails if the text is something else, or has a rank that the programs do not.
Result<std::vector<int64_t>> parseRanks(std::string_view text, std::span<const Program> programs);

/// The steps of one rank.
struct RankTimes {
  int64_t rank = 0;
  /// Of each instruction of the first step, in the order of the step's expansion, then of the next.
  std::span<const InstructionTime> times;
};

/// Returns the trace of steps `firstStep` and following. REQUIRES: the programs are those of all
/// classes; there are times for each rank of the scope, in its order, all of equally many whole
/// steps and on one clock, with none before 0.
std::string drawTimeLine(std::span<const Program> programs, TraceWriter::Source source,
                         const TimeLineScope &scope, std::span<const RankTimes> ranks,
                         int64_t firstStep);

} // namespace weft::rt

#endif // WEFT_RT_REPORT_TIMELINE_H
