//===- Box.h - copying a box of a larger array ------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A Box is a block of elements that lies in two row-major arrays of different
// shapes, as a rank's shard does in its own buffer and in the whole tensor. The
// constructor joins dimensions that are contiguous in both arrays, so that runs are
// as long as possible.
//
// All strides, offsets and lengths count elements. Immutable after construction;
// any thread may read.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_PROGRAM_BOX_H
#define WEFT_RT_PROGRAM_BOX_H

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace weft::rt {

/// Returns the distance, in elements, between neighboring indices of each dimension of a row-major
/// array.
std::vector<int64_t> rowMajorStrides(std::span<const int64_t> shape);

class Box {
public:
  /// Makes the box of `shape` whose element [i..] lies at sum(i * sourceStrides) in one array and
  /// at sum(i * targetStrides) in the other. The last strides must be 1.
  Box(std::span<const int64_t> shape, std::span<const int64_t> sourceStrides,
      std::span<const int64_t> targetStrides);

  /// Returns the number of elements of each run, which is contiguous in both arrays.
  int64_t run() const { return runLength; }

  /// Calls `visit(source, target)` with the offsets of each run. Allocates nothing.
  template <typename Visit> void forEachRun(const Visit &visit) const {
    if (runLength > 0) {
      walk(loops, 0, 0, visit);
    }
  }

  /// Copies the box from the array at `source` to the array at `target`.
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
