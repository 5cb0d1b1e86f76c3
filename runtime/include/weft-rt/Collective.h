//===- Collective.h - collectives of a program --------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_COLLECTIVE_H
#define WEFT_RT_COLLECTIVE_H

#include "weft-rt/ElementType.h"

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace weft::rt {

/// Programs store the number of the kind.
enum class CollectiveKind : uint8_t {
  AllReduce,
  AllGather,
  ReduceScatter,
  AllToAll,
  Permute,
  Transfer
};

struct CollectiveKindEntry {
  CollectiveKind kind;
  const char *name;
  /// It adds operands or takes their maximum.
  bool isReduction;
  /// It cuts or joins along `dim`; the others keep the shape of shards.
  bool changesShape;
};

/// All kinds, each at its number.
inline constexpr CollectiveKindEntry kCollectiveKinds[] = {
    {CollectiveKind::AllReduce, "all-reduce", true, false},
    {CollectiveKind::AllGather, "all-gather", false, true},
    {CollectiveKind::ReduceScatter, "reduce-scatter", true, true},
    {CollectiveKind::AllToAll, "all-to-all", false, true},
    {CollectiveKind::Permute, "permute", false, false},
    {CollectiveKind::Transfer, "transfer", false, false},
};

/// The kinds that groups of any size have: all but transfers.
inline constexpr auto kGroupKinds =
    std::span(kCollectiveKinds).first<size_t(CollectiveKind::Transfer)>();

constexpr const char *nameOf(CollectiveKind kind) { return kCollectiveKinds[size_t(kind)].name; }
constexpr bool isReduction(CollectiveKind kind) {
  return kCollectiveKinds[size_t(kind)].isReduction;
}
constexpr bool changesShape(CollectiveKind kind) {
  return kCollectiveKinds[size_t(kind)].changesShape;
}

/// Returns the kind called `name`, if there is one.
constexpr std::optional<CollectiveKind> collectiveKindOf(std::string_view name) {
  for (const CollectiveKindEntry &entry : kCollectiveKinds) {
    if (name == entry.name) {
      return entry.kind;
    }
  }
  return std::nullopt;
}

static_assert([] {
  for (size_t i = 0; i < std::size(kCollectiveKinds); ++i) {
    if (size_t(kCollectiveKinds[i].kind) != i) {
      return false;
    }
  }
  return true;
}());

/// The operator of a reduction that ranks can compute. The dialect's ReductionKind also has
/// logsumexp, which Partition expands into these.
enum class ReductionKind : uint8_t { Sum, Max };

constexpr const char *nameOf(ReductionKind kind) {
  return kind == ReductionKind::Sum ? "sum" : "max";
}

/// A collective over the ranks of a class that differ only in their coordinates on `axes`;
/// a rank's index in its group counts those coordinates, first axis major. Or one across rank
/// classes: over the ranks at the same place in each of `classes`, in this order.
/// `shape` is the local shape of the operand; n is the group's size.
///   all-reduce      result[..] = reduction over the group, in group order; bf16 and f16 are
///                   reduced in f32 and rounded once
///   all-gather      result is n times as long in `dim`, shard i from rank i
///   reduce-scatter  result is 1/n as long in `dim`: rank i's shard i, reduced
///   all-to-all      operand is cut in n along `dim`, shard i goes to rank i;
///                   received shards are joined along `dim2` in group order
///   permute         rank i's result is the operand of rank `sources[i]`; each rank is the
///                   source of one
///   transfer        of two ranks: the second's result is the operand of the first, which has no
///                   result; the second has no operand. What is missing is null. The two may call
///                   it from different places and programs. Two ranks that each send to the
///                   other at once do a permute of two ranks.
/// Operands of the instruction: operand, result (never the same buffer, except
/// for all-reduce, where they may be one).
struct Collective {
  CollectiveKind kind = CollectiveKind::AllReduce;
  ReductionKind reduction = ReductionKind::Sum;
  ElementType type = ElementType::F32;
  std::vector<uint32_t> axes = {};
  std::vector<int64_t> shape = {};
  uint32_t dim = 0, dim2 = 0;
  /// For a permute: the source of each rank of the group, as numbers in the group; else empty.
  std::vector<uint32_t> sources = {};
  /// For a collective across rank classes, which has no axes: all classes in ascending order, or
  /// the two of a permute. Else empty.
  std::vector<uint32_t> classes = {};
  /// The number of a collective across classes, by which the programs of its classes mean the same
  /// one; else 0. The place in the program, which tells collectives of one class apart, differs.
  uint32_t number = 0;

  bool isAcrossClasses() const { return !classes.empty(); }
};

} // namespace weft::rt

#endif // WEFT_RT_COLLECTIVE_H
