//===- Box.h - copying a box of a larger array ------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A Box is a set of elements that lies in two row-major arrays of different
// shapes: a rank's shard in its own buffer and in the whole tensor, or what an
// all-to-all moves from one rank to another. Dimensions that are contiguous in
// both are joined at construction, so walking it yields runs as long as can be.
//
// Counted in elements throughout. Immutable after construction.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_PROGRAM_BOX_H
#define WEFT_RT_PROGRAM_BOX_H

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace weft::rt {

/// Elements from one index to the next in each dimension of a row-major array.
std::vector<int64_t> rowMajorStrides(std::span<const int64_t> shape);

class Box {
public:
  /// The box of `shape` whose element [i..] lies at sum(i * sourceStrides) in one
  /// array and at sum(i * targetStrides) in the other. The last strides must be 1.
  Box(std::span<const int64_t> shape, std::span<const int64_t> sourceStrides,
      std::span<const int64_t> targetStrides);

  /// Elements that are contiguous in both arrays.
  int64_t run() const { return runLength; }

  /// Calls `visit(source, target)` with the offsets of each run. Allocates nothing.
  template <typename Visit> void forEachRun(const Visit &visit) const {
    if (runLength > 0) {
      walk(loops, 0, 0, visit);
    }
  }

  /// Copies the box, elements being `elementBytes` long, between arrays that begin
  /// at `source` and `target`.
  void copy(const void *source, void *target, size_t elementBytes) const;

private:
  struct Loop {
    int64_t count, sourceStride, targetStride;
  };

  template <typename Visit>
  static void walk(std::span<const Loop> loops, int64_t source, int64_t target,
                   const Visit &visit) {
    if (loops.empty()) {
      visit(source, target);
      return;
    }
    const Loop &loop = loops.front();
    for (int64_t i = 0; i < loop.count; ++i) {
      walk(loops.subspan(1), source + i * loop.sourceStride, target + i * loop.targetStride, visit);
    }
  }

  std::vector<Loop> loops;
  /// 0 if the box is empty.
  int64_t runLength = 1;
};

} // namespace weft::rt

#endif // WEFT_RT_PROGRAM_BOX_H
