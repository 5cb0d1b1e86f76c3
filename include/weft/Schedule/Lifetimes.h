//===- Lifetimes.h - when the instructions of a program need its buffers --===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One timeline for a whole program: the instructions of `init`, then those of `step`,
// then those of `evaluate`, one instant each. The sections use the same arena one
// after the other; nothing but what is persistent outlives one.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_SCHEDULE_LIFETIMES_H
#define WEFT_SCHEDULE_LIFETIMES_H

#include "weft-rt/Program.h"
#include "weft/Schedule/Arena.h"

namespace weft::schedule {

/// One entry for each buffer: its size and the instants of its first and last use. A persistent
/// buffer is needed from the first instant to the last; one that no instruction uses, never.
/// Operands that name no buffer are skipped: the proof reports them.
ArenaProblem makeArenaProblem(const rt::Program &program);

/// The places that the program's buffers have now, as a plan for that problem.
ArenaPlan currentPlan(const rt::Program &program);

/// Gives every buffer its place in the plan, and sets the size of the arena.
void placeBuffers(rt::Program &program, const ArenaPlan &plan);

/// Sizes in bytes; `gap` is what the plan takes above the bound, as a fraction of the bound.
struct ArenaReport {
  uint64_t bound = 0, bytes = 0;
  double gap() const { return bound == 0 ? 0 : double(bytes - bound) / double(bound); }
};

/// Gives every buffer its place by the packer of `Arena.h` and sets the size of the arena.
void packArena(rt::Program &program);

/// How good the places are that the program's buffers have now.
ArenaReport reportArena(const rt::Program &program);

} // namespace weft::schedule

#endif // WEFT_SCHEDULE_LIFETIMES_H
