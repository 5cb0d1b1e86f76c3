//===- Proof.h - proves that a program has no deadlocks or races ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Checks the tables of all ranks before any rank runs.
//
// Communication. There must be one linear order of all collectives of all ranks
// such that each rank issues its own in that order, and in each collective all
// ranks of a group take part with the same operation, element type, reduction,
// axes and shape. Then no rank can deadlock, even if each device has one stream
// and every send waits for its receive: all ranks of the first collective in this
// order that has not happened are always waiting for it. This holds even if several
// streams share a hardware queue: on each rank the order of issue covers all streams,
// and an instruction waits only for instructions issued before it. Assumption: a device
// can keep one communication kernel of each stream resident.
//
// Memory. Every operand names a buffer of the size that its instruction needs;
// every buffer is written before it is read, and its bytes are not written as another
// buffer's in between; what a framed buffer holds is read for the micro-batch for which it
// was written, and in its frame; inputs are never written; an evaluation writes no persistent
// buffer; no instruction writes bytes that it also reads through another operand; no two
// buffers that are needed at one instant share bytes. A rank that runs one instruction
// after the other therefore computes the intended values.
//
// Streams. If two instructions touch the same bytes of the arena and one of them
// writes these, the order on a stream and the waits alone make the later one begin
// after the earlier one has ended. A rank with concurrent streams therefore computes
// the same values. Assumption: all streams are synchronized where actions begin and end.
//
// The ranks of a class run the same table. What is equal for them is checked once: a
// thousand ranks cost as much as one.
//
// All functions are pure and may run on any thread.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_SCHEDULE_PROOF_H
#define WEFT_SCHEDULE_PROOF_H

#include "weft-rt/Program.h"

#include <span>
#include <string>
#include <vector>

namespace weft::schedule {

struct Proof {
  /// The errors, in the order found: at most `kMaxDiagnostics`, then a line with the number of
  /// further ones. A message names ranks, instructions and their labels.
  std::vector<std::string> diagnostics;
  /// `rt::certificateOf` the tables; empty if the proof failed.
  std::string certificate;

  static constexpr size_t kMaxDiagnostics = 20;
  bool holds() const { return diagnostics.empty(); }
};

/// Checks the tables of all rank classes together. REQUIRES: at least one.
Proof prove(std::span<const rt::Program> programs);
/// Checks the table of one rank class by itself: all that there is to check if it is the only one.
Proof prove(const rt::Program &program);

} // namespace weft::schedule

#endif // WEFT_SCHEDULE_PROOF_H
