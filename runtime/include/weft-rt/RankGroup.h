//===- RankGroup.h - ranks that communicate -----------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_RANKGROUP_H
#define WEFT_RT_RANKGROUP_H

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace weft::rt {

/// One mesh axis.
struct Axis {
  std::string name;
  int64_t size = 1;
};

/// The ranks from `first` to `first + count - 1`.
struct RankRange {
  int64_t first = 0, count = 0;

  bool has(int64_t rank) const { return rank >= first && rank < first + count; }
};

/// Returns the index of `rank` in `ranks`. REQUIRES: it is one of them.
size_t indexOf(int64_t rank, std::span<const int64_t> ranks);

/// The ranks that take part in a collective. All of them describe it in the same way.
struct RankGroup {
  /// Distinct ranks, in group order: collectives count ranks by it.
  std::vector<int64_t> ranks;
  /// Tells messages of this group from those of others: groups that share several ranks, but not
  /// all, have different numbers. Below `kGroupNumbers`.
  uint32_t number = 0;

  /// Returns the index of `rank` in the group. REQUIRES: it is a member.
  size_t indexOf(int64_t rank) const { return rt::indexOf(rank, ranks); }
};

/// The most axes of a mesh.
inline constexpr size_t kMostAxes = 12;
/// Groups over mesh axes have numbers below this.
inline constexpr uint32_t kAxisGroups = 1 << kMostAxes;
/// The numbers of the group of all ranks, of groups with a rank of each rank class, and of pairs of
/// ranks.
inline constexpr uint32_t kAllRanks = kAxisGroups, kAllClasses = kAllRanks + 1,
                          kPairs = kAllRanks + 2;
inline constexpr uint32_t kGroupNumbers = kPairs + 1;

/// Returns the group of all ranks, from 0 to `count - 1`.
RankGroup allRanks(int64_t count);

/// Returns the group of a transfer. A rank may be in several pairs; all have the number `kPairs`.
RankGroup pairOf(int64_t sender, int64_t receiver);

/// Returns the ranks of `mesh` that differ from `rank` only on `axes`, the first axis major. Ranks
/// are numbered row-major. Its number has a bit for each axis of several coordinates.
RankGroup groupOver(std::span<const uint32_t> axes, int64_t rank, std::span<const Axis> mesh);

} // namespace weft::rt

#endif // WEFT_RT_RANKGROUP_H
