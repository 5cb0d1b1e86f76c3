//===- Arena.h - places in memory for buffers whose lifetimes are known ---===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All memory of a rank is one arena. A buffer needs its bytes from the first to
// the last instruction that uses it; two buffers may share bytes when no
// instruction needs both. The problem is data, the solver a function on it, and
// the check knows nothing of the solver:
//
//   ArenaProblem problem = ...;
//   ArenaPlan plan = packArena(problem);
//   std::vector<ArenaFault> faults = checkArena(problem, plan);   // must be empty
//   ... arenaLowerBound(problem) ... plan.bytes     // how good it is
//
// Everything here is a plain value; functions keep no state and may run on any
// thread.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_SCHEDULE_ARENA_H
#define WEFT_SCHEDULE_ARENA_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft::schedule {

/// A size in bytes and the first and last instant, both included, at which these bytes must
/// not be touched by others. With `first > last` the buffer is never needed.
struct ArenaBuffer {
  uint64_t bytes = 0;
  int64_t first = 0, last = -1;
  bool isNeeded() const { return first <= last && bytes > 0; }
};

struct ArenaProblem {
  /// A power of two; every offset is a multiple of it.
  uint64_t alignment = 64;
  std::vector<ArenaBuffer> buffers;
};

/// One offset for each buffer of the problem, and the size of the whole.
struct ArenaPlan {
  std::vector<uint64_t> offsets;
  uint64_t bytes = 0;
};

/// How `packFirstFit` treats buffers that live for a moment. What is saved for long and what is
/// not, mixed, leaves holes that fit nothing; so buffers that live no longer than `shortLife`
/// instants may come from the other end, below `ceiling`. With a ceiling of 0 all are alike.
struct FirstFitOptions {
  int64_t shortLife = 0;
  uint64_t ceiling = 0;
};

/// Walks through time: a buffer takes the lowest hole that holds it at its first instant (those
/// of short life the highest below the ceiling, if there is one), those that live longer first,
/// and gives it back after its last, where it joins the holes beside it. O(n log n). Buffers
/// that are never needed get offset 0. REQUIRES: sizes sum to less than 2^62.
ArenaPlan packFirstFit(const ArenaProblem &problem, const FirstFitOptions &options = {});

/// The largest first: each takes the lowest place that no buffer before it holds at a common
/// instant. As long as the plan is larger than `target`, and at most `repairs` times, those that
/// end above it come first and all are placed again. The smallest plan met; O(n^2) for each.
/// Buffers that are never needed get offset 0. REQUIRES: sizes sum to less than 2^62.
ArenaPlan packBySize(const ArenaProblem &problem, uint64_t target, int64_t repairs);

/// Tries first fit with several notions of a short life, and with ceilings at the lower bound and
/// a little above, as long as all have cost no more than `kMaxPlaced` buffers placed; then the
/// largest first, if that takes no more than `kMaxCompared` comparisons of two buffers. Returns the
/// smallest plan; ends early when one is within a thousandth of the bound.
ArenaPlan packArena(const ArenaProblem &problem);
inline constexpr size_t kMaxPlaced = 1000000;
inline constexpr double kMaxCompared = 2e8;

/// The largest sum of (aligned) sizes that are needed at one instant: no plan is smaller.
uint64_t arenaLowerBound(const ArenaProblem &problem);

/// What is wrong with a plan.
struct ArenaFault {
  enum class Kind {
    /// The plan has another number of offsets than the problem has buffers.
    WrongCount,
    /// The offset of `buffer` is no multiple of the alignment.
    Misaligned,
    /// `buffer` ends beyond the arena.
    BeyondArena,
    /// `buffer` and `other` share bytes and an instant.
    Overlap,
  };
  Kind kind;
  uint32_t buffer = 0, other = 0;
};

/// Independent of every solver: sweeps over time with the set of live intervals, ordered by
/// address. Finds a fault if there is one; reports every buffer that overlaps an earlier one.
std::vector<ArenaFault> checkArena(const ArenaProblem &problem, const ArenaPlan &plan);

/// "buffer 3 and buffer 7 overlap in space and time", ...
std::string toText(const ArenaFault &fault);

/// One line for each buffer, `buffer BYTES FIRST LAST`, after `alignment BYTES`.
std::string toText(const ArenaProblem &problem);

/// Reads that form; `#` begins a comment. On an error returns false and sets `error`, which
/// names the line.
bool parseArenaProblem(std::string_view text, ArenaProblem &problem, std::string &error);

} // namespace weft::schedule

#endif // WEFT_SCHEDULE_ARENA_H
