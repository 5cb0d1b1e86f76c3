//===- FramePlaces.h - places of frames in a region -------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All frames of a section lie in one region. Its time is that of the section's actions, and
// where a micro-batch's one frame ends and another begins in an action, that of the body's
// instructions.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_SCHEDULE_FRAMEPLACES_H
#define WEFT_LIB_SCHEDULE_FRAMEPLACES_H

#include "FrameShapes.h"

#include <compare>

namespace weft::schedule {

/// The first and the last action that need something.
struct Span {
  size_t first = 0, last = 0;
  auto operator<=>(const Span &) const = default;
  bool meets(const Span &other) const { return first <= other.last && other.first <= last; }
};

/// A frame that one owner needs: a micro-batch or, numbered by -1, -2 and so on, what is gathered
/// for several of them and used until it is gathered anew.
struct Frame {
  uint32_t set = 0;
  int64_t owner = 0;
  Span span = {};
  uint64_t bytes = 0, offset = 0;
  /// What frames of this size and a little less are placed as.
  uint64_t slot = 0;
  /// Placed as high as the goal allows, not as low as possible.
  bool isHigh = false;
  uint64_t end() const { return offset + bytes; }
};

struct PackingGoal {
  /// A region of this size is good enough.
  uint64_t bytes = 0;
  /// The pairs of frames that may still be compared to get there.
  size_t effort = 0;
};

/// Gives the frames of a section their places and returns the size of the region. Places the
/// largest first: each in a place that its set has had, else in the lowest that is free. Until the
/// goal is reached, changes the best order found so far by random moves, at most `changes` times; a
/// frame may then also lie as high as the goal allows.
uint64_t placeFrames(std::vector<Frame> &frames, const std::vector<rt::Action> &section,
                     FrameShapes &shapes, size_t changes, PackingGoal &goal);

} // namespace weft::schedule

#endif // WEFT_LIB_SCHEDULE_FRAMEPLACES_H
