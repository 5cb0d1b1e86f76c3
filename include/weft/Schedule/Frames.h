//===- Frames.h - places for micro-batches in flight -----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A buffer that holds what a micro-batch leaves to a later action of it is needed from the first of
// its actions that uses the buffer to the last. Where some buffer of a section is needed for two
// micro-batches at a time, or these do not all have one order of actions, all of them lie in
// frames.
//
//   Sets.    Buffers that each micro-batch needs from the same action to the same action are in one
//            frame set: what a chunk of a pipeline stage keeps from forward to backward, what it
//            has yet to send, what it has received.
//            What an action of no micro-batch gathers for those of several is in sets of its own:
//            a frame is needed from that action to the last one before it is gathered anew.
//   Places.  All frames of a section lie in one region of the arena. A micro-batch's frame has its
//            place there from the first action to the last, and others have it at other times, in
//            frames of other sets too. In the first action a frame fills and in the last it
//            empties: where a micro-batch's one frame ends and another begins, they may share
//            bytes. So the region is as large as what is in use at one time, whatever the schedule.
//   Scratch. What an action needs for itself alone lies in its frames, where these hold nothing at
//            that time: not yet in forward, not any more in backward. The rest has a set of its
//            own, with a frame for one action each, so it too lies where others are not in use.
//   Search.  The largest frames are placed first, each at the lowest place of its set that is free,
//            else at the lowest of all. If that takes more than 0.4 % of the arena above what is in
//            use, sets are cut into parts of about equal size, and orders are changed at random.
//            The number of compared frames is limited, so a class takes about 0.1 s at most.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_SCHEDULE_FRAMES_H
#define WEFT_SCHEDULE_FRAMES_H

#include "weft-rt/Program.h"

#include <array>
#include <vector>

namespace weft::schedule {

/// Adds frame sets for the buffers of a section that need frames. `mayHaveFrames` says of each
/// buffer of the program whether a micro-batch, or an action that gathers, leaves something in it
/// to a later action. REQUIRES: only this section uses such buffers, and other actions of no
/// micro-batch do not.
void makeFrameSets(rt::Program &program, const std::vector<rt::Action> &section,
                   const std::vector<bool> &mayHaveFrames);

/// `init`, `step` and `evaluate`, in order.
inline constexpr size_t kFrameRegions = 3;

/// Lays out the frames of each set and their scratch, gives actions their frames, and frames their
/// places in regions that begin at 0. Holds for the present order, streams and waits of
/// instructions. REQUIRES: no set is used in two sections.
void packFrames(rt::Program &program);

/// Leaves in frames only what several bodies use.
void takeScratchFromFrames(rt::Program &program);

/// The bytes of the arena from the first frame of a section to the end of its last.
struct FrameRegion {
  uint64_t begin = 0, end = 0;
};

/// Returns the most bytes of frames that are in use at one time, for each section.
std::array<uint64_t, kFrameRegions> findMostFrameBytes(const rt::Program &program);

/// Returns the region of each section; an empty one at 0 where a section has no frames.
std::array<FrameRegion, kFrameRegions> findFrameRegions(const rt::Program &program);
/// Returns the number of the section that uses each frame set. A set that no action uses counts as
/// one of `step`.
std::vector<size_t> findSectionsOfSets(const rt::Program &program);

} // namespace weft::schedule

#endif // WEFT_SCHEDULE_FRAMES_H
