//===- Lifetimes.h - lifetimes of the buffers of a program ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A whole program has one timeline, that of `rt::BufferLives`: the instructions of all
// bodies, one instant each. The sections use the same arena one after the other; only
// persistent buffers outlive a section.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_SCHEDULE_LIFETIMES_H
#define WEFT_SCHEDULE_LIFETIMES_H

#include "weft-rt/Program.h"
#include "weft/Schedule/Arena.h"

namespace weft::schedule {

/// Returns one entry for each buffer: its size and its life. A persistent buffer is needed from the
/// first instant to the last; an unused one, never. Operands that name no buffer are skipped: the
/// proof reports them.
ArenaProblem makeArenaProblem(const rt::Program &program);

/// Returns the current places of the program's buffers, as a plan for that problem.
ArenaPlan currentPlan(const rt::Program &program);

/// Places every buffer as in the plan, and sets the size of the arena.
void placeBuffers(rt::Program &program, const ArenaPlan &plan);

/// Sizes in bytes; `gap` is the excess of the plan over the bound, as a fraction of the bound.
struct ArenaReport {
  uint64_t bound = 0, bytes = 0;
  double gap() const { return bound == 0 ? 0 : double(bytes - bound) / double(bound); }
};

/// Places every buffer by `packArena` of `Arena.h` and sets the size of the arena.
void packArena(rt::Program &program);

/// Compares the current places of the program's buffers with the lower bound.
ArenaReport reportArena(const rt::Program &program);

} // namespace weft::schedule

#endif // WEFT_SCHEDULE_LIFETIMES_H
