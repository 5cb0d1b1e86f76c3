//===- ClockBarriers.h - compares the clocks of ranks ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ranks on different machines have clocks that start at different times. To compare them, all ranks
// pass some barriers, and each reads its own clock before and after. No rank leaves a barrier
// before all have come to it, so the time at which one comes, on any clock, is not after that at
// which another leaves: each barrier bounds the difference of two clocks from both sides, by no
// more than it takes itself.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_TRAINING_CLOCKBARRIERS_H
#define WEFT_RT_TRAINING_CLOCKBARRIERS_H

#include "weft-rt/Backend.h"

#include <array>
#include <cstdint>

namespace weft::rt {

/// Of one rank. Belongs to the rank's thread.
class ClockBarriers {
public:
  static constexpr size_t kBarriers = 32;
  /// When a rank came and left, in nanoseconds of its steady clock.
  struct Barrier {
    int64_t came = 0, left = 0;
  };
  using Barriers = std::array<Barrier, kBarriers>;

  /// Prepares the barriers of all `ranks`, which call it at the same point.
  void prepare(Communicator &communicator, int64_t ranks);
  /// Passes the barriers. All ranks call it at the same point. Returns false if the run has
  /// stopped.
  bool pass(Communicator &communicator);

  const Barriers &all() const { return barriers; }

private:
  Communicator::Handle handle = 0;
  Barriers barriers;
};

/// The difference of two clocks, in nanoseconds.
struct ClockDifference {
  /// The second clock is ahead of the first by this, and the error is at most `error`.
  int64_t ahead = 0, error = 0;
};

/// Compares the clocks of two ranks that have passed the same barriers. They are the same if they
/// may be, as those of ranks on one machine are; otherwise the difference is the middle of its
/// bounds.
ClockDifference compareClocks(const ClockBarriers::Barriers &first,
                              const ClockBarriers::Barriers &second);

} // namespace weft::rt

#endif // WEFT_RT_TRAINING_CLOCKBARRIERS_H
