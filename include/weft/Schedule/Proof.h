//===- Proof.h - nothing leaves the compiler unproven ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Checks the tables that all ranks will run, before any of them does.
//
// Communication. There must be one linear order of all collectives of all ranks
// such that each rank issues its own in that order, and in each collective all
// ranks of a group take part with the same operation, element type, reduction,
// axes and shape. Then nothing can deadlock, even if each device has one stream
// and every send waits for its receive: the first collective of the order that has
// not happened always finds all its ranks waiting for it. It holds under any
// aliasing of queues, as the order of issue is such an order for all streams of a rank
// together: whatever waits, waits for what was issued before it. Assumed: a device can
// keep one communication kernel of each stream resident.
//
// Memory. Every operand names a buffer of the size that its instruction needs;
// nothing is read before it is written; inputs are never written; an evaluation
// writes nothing that is persistent; no instruction
// writes bytes that it also reads through another operand; no two buffers that are
// needed at one instant share bytes: so a rank that does one instruction after the
// other computes what was meant.
//
// Streams. Of two instructions that touch the same bytes of the arena, one of which
// writes them, the later one begins when the earlier one has ended, by the order on a
// stream and by waits alone. So a rank whose streams run beside one another computes
// the same. Assumed: sections begin and end with all streams together.
//
// Ranks that run the same table form a class, and what is equal for a class is
// looked at once: a thousand ranks cost as much as one.
//
// Plain functions of values, for any thread.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_SCHEDULE_PROOF_H
#define WEFT_SCHEDULE_PROOF_H

#include "weft-rt/Program.h"

#include <span>
#include <string>
#include <vector>

namespace weft::schedule {

/// The ranks that run one table. The program is not owned.
struct RankClass {
  const rt::Program *program = nullptr;
  std::vector<int64_t> ranks;
};

struct Proof {
  /// What is wrong, in the order found, at most `kMaxDiagnostics` and then a line that says how
  /// many more there are. A message names ranks, instructions and their labels.
  std::vector<std::string> diagnostics;
  /// 16 hexadecimal digits over all tables and their ranks; empty if the proof failed.
  std::string certificate;

  static constexpr size_t kMaxDiagnostics = 20;
  bool holds() const { return diagnostics.empty(); }
};

/// Checks all classes together. REQUIRES: at least one class.
Proof prove(std::span<const RankClass> classes);

/// All ranks of the program's mesh run this one table.
Proof prove(const rt::Program &program);

} // namespace weft::schedule

#endif // WEFT_SCHEDULE_PROOF_H
