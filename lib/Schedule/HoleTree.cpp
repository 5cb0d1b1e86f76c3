//===- HoleTree.cpp - free intervals of an arena, by address --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HoleTree.h"

#include <algorithm>

using namespace weft::schedule;

HoleTree::HoleTree(uint64_t begin, uint64_t end) {
  if (begin < end) {
    root = makeNode(begin, end - begin);
  }
}

HoleTree::Index HoleTree::makeNode(uint64_t offset, uint64_t bytes) {
  random ^= random << 13;
  random ^= random >> 17;
  random ^= random << 5;
  Node node{offset, bytes, bytes, random, kNone, kNone};
  if (unused.empty()) {
    nodes.push_back(node);
    return static_cast<Index>(nodes.size() - 1);
  }
  Index index = unused.back();
  unused.pop_back();
  nodes[index] = node;
  return index;
}

void HoleTree::update(Index index) {
  Node &node = nodes[index];
  node.largest = node.bytes;
  if (node.left != kNone) {
    node.largest = std::max(node.largest, nodes[node.left].largest);
  }
  if (node.right != kNone) {
    node.largest = std::max(node.largest, nodes[node.right].largest);
  }
}

void HoleTree::split(Index tree, uint64_t offset, Index &before, Index &after) {
  if (tree == kNone) {
    before = after = kNone;
    return;
  }
  if (nodes[tree].offset < offset) {
    Index middle;
    split(nodes[tree].right, offset, middle, after);
    nodes[tree].right = middle;
    before = tree;
  } else {
    Index middle;
    split(nodes[tree].left, offset, before, middle);
    nodes[tree].left = middle;
    after = tree;
  }
  update(tree);
}

HoleTree::Index HoleTree::merge(Index before, Index after) {
  if (before == kNone || after == kNone) {
    return before == kNone ? after : before;
  }
  if (nodes[before].priority > nodes[after].priority) {
    nodes[before].right = merge(nodes[before].right, after);
    update(before);
    return before;
  }
  nodes[after].left = merge(before, nodes[after].left);
  update(after);
  return after;
}

HoleTree::Index HoleTree::popFirst(Index &tree) {
  if (nodes[tree].left == kNone) {
    Index first = tree;
    tree = nodes[tree].right;
    return first;
  }
  Index first = popFirst(nodes[tree].left);
  update(tree);
  return first;
}

HoleTree::Index HoleTree::popLast(Index &tree) {
  if (nodes[tree].right == kNone) {
    Index last = tree;
    tree = nodes[tree].left;
    return last;
  }
  Index last = popLast(nodes[tree].right);
  update(tree);
  return last;
}

bool HoleTree::find(uint64_t bytes, Index Node::*near, Index Node::*far) {
  way.clear();
  if (!hasRoom(root, bytes)) {
    return false;
  }
  way.push_back(root);
  while (true) {
    const Node &node = nodes[way.back()];
    if (hasRoom(node.*near, bytes)) {
      way.push_back(node.*near);
    } else if (node.bytes >= bytes) {
      return true;
    } else {
      way.push_back(node.*far);
    }
  }
}

void HoleTree::shrink() {
  Index index = way.back();
  if (nodes[index].bytes == 0) {
    Index joined = merge(nodes[index].left, nodes[index].right);
    unused.push_back(index);
    way.pop_back();
    if (way.empty()) {
      root = joined;
    } else if (nodes[way.back()].left == index) {
      nodes[way.back()].left = joined;
    } else {
      nodes[way.back()].right = joined;
    }
  }
  for (; !way.empty(); way.pop_back()) {
    update(way.back());
  }
}

std::optional<uint64_t> HoleTree::takeLowest(uint64_t bytes) {
  if (!find(bytes, &Node::left, &Node::right)) {
    return std::nullopt;
  }
  Node &node = nodes[way.back()];
  uint64_t offset = node.offset;
  node.offset += bytes;
  node.bytes -= bytes;
  shrink();
  return offset;
}

std::optional<uint64_t> HoleTree::takeHighest(uint64_t bytes) {
  if (!find(bytes, &Node::right, &Node::left)) {
    return std::nullopt;
  }
  Node &node = nodes[way.back()];
  node.bytes -= bytes;
  uint64_t offset = node.offset + node.bytes;
  shrink();
  return offset;
}

void HoleTree::give(uint64_t offset, uint64_t bytes) {
  Index before, after;
  split(root, offset, before, after);
  if (before != kNone) {
    Index last = popLast(before);
    Node &node = nodes[last];
    if (node.offset + node.bytes == offset) {
      offset = node.offset;
      bytes += node.bytes;
      unused.push_back(last);
    } else {
      node.left = kNone;
      update(last);
      before = merge(before, last);
    }
  }
  if (after != kNone) {
    Index first = popFirst(after);
    Node &node = nodes[first];
    if (offset + bytes == node.offset) {
      bytes += node.bytes;
      unused.push_back(first);
    } else {
      node.right = kNone;
      update(first);
      after = merge(first, after);
    }
  }
  root = merge(merge(before, makeNode(offset, bytes)), after);
}
