//===- FrameScratch.h - what bodies need for themselves alone ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_SCHEDULE_FRAMESCRATCH_H
#define WEFT_LIB_SCHEDULE_FRAMESCRATCH_H

#include "FrameShapes.h"

namespace weft::schedule {

/// Puts buffers that only one body uses into frames, if the section has any: as far as there is
/// room for them into the body's other frames, and the rest into a set for the body alone, the last
/// of the program. REQUIRES: frames are laid out.
void placeScratchInFrames(rt::Program &program, const BodyNeeds &needs);

/// Leaves in frames only what several bodies use.
void takeScratchFromFrames(rt::Program &program, const BodyNeeds &needs);

} // namespace weft::schedule

#endif // WEFT_LIB_SCHEDULE_FRAMESCRATCH_H
