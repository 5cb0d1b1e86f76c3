//===- HoleTree.h - free intervals of an arena, by address ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The free memory of an arena as a treap (a search tree by address, a heap by random
// priority). Each node stores the size of the largest hole in its subtree, so the lowest
// hole of a given size is found in O(log n). Priorities come from a fixed sequence: the
// same calls give the same tree.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_SCHEDULE_HOLETREE_H
#define WEFT_LIB_SCHEDULE_HOLETREE_H

#include <cstdint>
#include <optional>
#include <vector>

namespace weft::schedule {

class HoleTree {
public:
  /// Begins with one hole, [begin, end), or none if begin == end.
  HoleTree(uint64_t begin, uint64_t end);

  /// Takes `bytes` from the front of the lowest hole that is large enough, or from the back of the
  /// highest; returns the offset, or nothing if no hole is large enough. REQUIRES: bytes > 0.
  std::optional<uint64_t> takeLowest(uint64_t bytes);
  std::optional<uint64_t> takeHighest(uint64_t bytes);

  /// Frees [offset, offset + bytes) and merges it with adjacent holes.
  /// REQUIRES: no part of it is a hole.
  void give(uint64_t offset, uint64_t bytes);

private:
  using Index = uint32_t;
  static constexpr Index kNone = ~Index(0);
  struct Node {
    uint64_t offset, bytes, largest;
    uint32_t priority;
    Index left, right;
  };

  Index makeNode(uint64_t offset, uint64_t bytes);
  void update(Index node);
  bool hasRoom(Index tree, uint64_t bytes) const {
    return tree != kNone && nodes[tree].largest >= bytes;
  }
  /// Finds the lowest (highest) hole of that size; stores the path to it in `way`.
  bool find(uint64_t bytes, Index Node::*near, Index Node::*far);
  /// Updates the nodes of `way` after the hole at its end has become smaller.
  void shrink();
  /// Splits `tree` into the nodes before `offset` and those at or after it.
  void split(Index tree, uint64_t offset, Index &before, Index &after);
  Index merge(Index before, Index after);
  /// Removes the first (last) node of `tree` and returns it.
  Index popFirst(Index &tree);
  Index popLast(Index &tree);

  std::vector<Node> nodes;
  std::vector<Index> unused, way;
  Index root = kNone;
  uint32_t random = 2463534242u;
};

} // namespace weft::schedule

#endif // WEFT_LIB_SCHEDULE_HOLETREE_H
