//===- Arena.h - packs buffers with known lifetimes into one arena --------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All memory of a rank is one arena. A buffer needs its bytes from the first to
// the last instruction that uses it; two buffers may share bytes if no
// instruction needs both. The problem is plain data, the solver is a function of
// it, and the check shares no code with the solver:
//
//   ArenaProblem problem = ...;
//   ArenaPlan plan = packArena(problem);
//   std::vector<ArenaFault> faults = checkArena(problem, plan);   // must be empty
//   ... arenaLowerBound(problem) ... plan.bytes     // how good the plan is
//
// All types here are plain values; the functions keep no state and may run on any
// thread.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_SCHEDULE_ARENA_H
#define WEFT_SCHEDULE_ARENA_H

#include "weft-rt/Status.h"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace weft::schedule {

/// A size in bytes and the first and last instant, both inclusive, at which no other buffer may
/// touch these bytes. With `first > last` the buffer is never needed.
struct ArenaBuffer {
  uint64_t bytes = 0;
  int64_t first = 0, last = -1;
  bool isNeeded() const { return first <= last && bytes > 0; }
};

struct ArenaProblem {
  /// A power of two; all offsets are multiples of it.
  uint64_t alignment = 64;
  std::vector<ArenaBuffer> buffers;
};

/// One offset for each buffer of the problem, and the size of the arena, in bytes.
struct ArenaPlan {
  std::vector<uint64_t> offsets;
  uint64_t bytes = 0;
};

/// How `packFirstFit` places short-lived buffers. Long-lived and short-lived buffers side by side
/// leave holes that no other buffer fits. Buffers that live at most `shortLife` instants are
/// therefore placed from the other end of the arena, downwards from `ceiling` (bytes). With a
/// ceiling of 0 all buffers are treated alike.
struct FirstFitOptions {
  int64_t shortLife = 0;
  uint64_t ceiling = 0;
};

/// Packs buffers in the order of their first instants, the longer-lived first among those of one
/// instant. A buffer takes the lowest hole that is large enough (a short-lived one the highest
/// below the ceiling) and frees it after its last instant, when it merges with adjacent holes.
/// O(n log n). Buffers that are never needed get offset 0. REQUIRES: sizes sum to less than 2^62.
ArenaPlan packFirstFit(const ArenaProblem &problem, const FirstFitOptions &options = {});

/// Packs buffers in the order of their sizes, the largest first: each takes the lowest place that
/// is free throughout its lifetime. While the plan is larger than `target`, and at most `repairs`
/// times, buffers that end above `target` move to the front of the order and all are placed again.
/// Returns the smallest plan found. Each round takes O(n^2). Buffers that are never needed get
/// offset 0. REQUIRES: sizes sum to less than 2^62.
ArenaPlan packBySize(const ArenaProblem &problem, uint64_t target, int64_t repairs);

/// Tries `packFirstFit` with several values of `shortLife`, and with ceilings at the lower bound
/// and slightly above, until these attempts have placed `kMaxPlaced` buffers in total; then tries
/// `packBySize`, if that takes at most `kMaxCompared` comparisons of two buffers. Returns the
/// smallest plan; stops early when a plan is within a thousandth of the bound.
ArenaPlan packArena(const ArenaProblem &problem);
inline constexpr size_t kMaxPlaced = 1000000;
inline constexpr double kMaxCompared = 2e8;

/// Returns the largest sum of aligned sizes needed at one instant: no plan is smaller.
uint64_t arenaLowerBound(const ArenaProblem &problem);

/// An error in a plan.
struct ArenaFault {
  enum class Kind {
    /// The plan's number of offsets differs from the problem's number of buffers.
    WrongCount,
    /// The offset of `buffer` is not a multiple of the alignment.
    Misaligned,
    /// `buffer` ends beyond the arena.
    BeyondArena,
    /// `buffer` and `other` share bytes at some instant.
    Overlap,
  };
  Kind kind;
  uint32_t buffer = 0, other = 0;
};

/// Checks a plan without knowledge of the solver: sweeps over time with the set of live
/// intervals, ordered by address. Reports every buffer that overlaps an earlier one; an empty
/// result means that the plan is correct.
std::vector<ArenaFault> checkArena(const ArenaProblem &problem, const ArenaPlan &plan);

/// Returns text such as "buffer 3 and buffer 7 overlap in space and time", with the names that
/// `nameOf` gives to buffers of the problem.
std::string toText(const ArenaFault &fault, const std::function<std::string(uint32_t)> &nameOf);
std::string toText(const ArenaFault &fault);

/// Returns `alignment BYTES`, then one line for each buffer, `buffer BYTES FIRST LAST`.
std::string toText(const ArenaProblem &problem);

/// Parses the form that `toText` writes; `#` begins a comment. An error names the line.
rt::Result<ArenaProblem> parseArenaProblem(std::string_view text);

} // namespace weft::schedule

#endif // WEFT_SCHEDULE_ARENA_H
