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
// All frames of a section are packed as one buffer that is needed while any of them is: see
// `Frames.h`.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_SCHEDULE_LIFETIMES_H
#define WEFT_SCHEDULE_LIFETIMES_H

#include "weft-rt/Program.h"
#include "weft/Schedule/Arena.h"

namespace weft::schedule {

/// Returns what is packed: one entry for each buffer and then one for the frames of each section,
/// its size and its life. A persistent buffer is needed from the first instant to the last; an
/// unused or framed one, never. Operands that name no buffer are skipped: the proof reports them.
/// REQUIRES: frames have their places.
ArenaProblem makeArenaProblem(const rt::Program &program);
/// Returns the number of the entry in which each buffer lies: its own or its section's frames.
std::vector<size_t> findEntries(const rt::Program &program);

/// Places every buffer and frame as in a plan for that problem, and sets the size of the arena.
void placeBuffers(rt::Program &program, const ArenaPlan &plan);

/// Packs frames and their scratch, places every buffer and all frames by `packArena` of `Arena.h`,
/// and sets the size of the arena.
void packArena(rt::Program &program);

} // namespace weft::schedule

#endif // WEFT_SCHEDULE_LIFETIMES_H
