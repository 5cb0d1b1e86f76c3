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
// What is packed and what is checked are two problems. A frame set is packed as one
// buffer that is needed while any of its frames is; in a frame, buffers lie one after
// another, since all of them are needed at once, from one action to another. The check
// knows no sets: it sees each place of each buffer, with the place's own life.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_SCHEDULE_LIFETIMES_H
#define WEFT_SCHEDULE_LIFETIMES_H

#include "weft-rt/Program.h"
#include "weft/Schedule/Arena.h"

namespace weft::schedule {

/// Returns what is packed: one entry for each buffer and then one for each frame set, its size and
/// its life. A persistent buffer is needed from the first instant to the last; an unused or framed
/// one, never. Operands that name no buffer are skipped: the proof reports them. REQUIRES: frames
/// are laid out.
ArenaProblem makeArenaProblem(const rt::Program &program);
/// Returns the number of the entry in which a buffer lies: its own or its frame set's.
size_t entryOf(const rt::Program &program, uint32_t buffer);

/// Places every buffer and frame set as in a plan for that problem, and sets the size of the arena.
void placeBuffers(rt::Program &program, const ArenaPlan &plan);

/// Puts the buffers of each frame one after another, and sets the frames' sizes.
void layOutFrames(rt::Program &program);

/// Returns what is checked: one entry for each of the program's `rt::BufferPlaces`.
ArenaProblem makePlaceProblem(const rt::Program &program);
/// Returns the current places, as a plan for that problem.
ArenaPlan currentPlan(const rt::Program &program);

/// Sizes in bytes; `gap` is the excess of the plan over the bound, as a fraction of the bound.
struct ArenaReport {
  uint64_t bound = 0, bytes = 0;
  double gap() const { return bound == 0 ? 0 : double(bytes - bound) / double(bound); }
};

/// Lays out frames, places every buffer and frame set by `packArena` of `Arena.h`, and sets the
/// size of the arena.
void packArena(rt::Program &program);

/// Compares the current places of the program's buffers with the lower bound.
ArenaReport reportArena(const rt::Program &program);

} // namespace weft::schedule

#endif // WEFT_SCHEDULE_LIFETIMES_H
