//===- Frames.h - places for micro-batches in flight -----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A buffer that holds what a micro-batch leaves to a later action of it is needed from the first of
// its actions that uses the buffer to the last. If the buffer is never needed for two micro-batches
// at a time, one place is enough. Else it lies in frames: a micro-batch has the least frame that no
// other has while any of its framed buffers is needed, so there are as many as are in flight.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_SCHEDULE_FRAMES_H
#define WEFT_SCHEDULE_FRAMES_H

#include "weft-rt/Program.h"

#include <vector>

namespace weft::schedule {

/// Adds frame sets for the buffers of a section that need one, and gives actions their frames. No
/// body uses buffers of two sets, so each chunk of a pipeline stage has a set of its own.
/// `isOfMicroBatch` says of each buffer of the program whether a micro-batch leaves something in it
/// to a later action. REQUIRES: only actions of micro-batches use such buffers.
void assignFrames(rt::Program &program, std::vector<rt::Action> &section,
                  const std::vector<bool> &isOfMicroBatch);

} // namespace weft::schedule

#endif // WEFT_SCHEDULE_FRAMES_H
