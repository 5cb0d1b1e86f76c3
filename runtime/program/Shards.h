//===- Shards.h - copies between a rank's shard and the whole tensor ------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_PROGRAM_SHARDS_H
#define WEFT_RT_PROGRAM_SHARDS_H

#include "weft-rt/Program.h"

#include <functional>

namespace weft::rt {

/// A box of a tensor: the first index and the length in each dimension. It lies row-major in memory
/// of its own.
struct Region {
  std::vector<int64_t> offset, shape;
};

/// Returns the region of a whole tensor.
Region wholeRegion(std::span<const int64_t> shape);

/// Returns the region that the rank at `coordinates` holds, padding included.
Region localRegion(const TensorLayout &layout, std::span<const Axis> mesh,
                   std::span<const int64_t> coordinates);

/// Returns the same region without padding; its shape has a 0 if the rank holds only padding.
Region dataRegion(const TensorLayout &layout, std::span<const Axis> mesh,
                  std::span<const int64_t> coordinates);

/// Copies the intersection of two regions of one tensor from the memory of `from` to that of `to`.
void copyOverlap(const Region &from, const void *source, const Region &to, void *target,
                 size_t elementBytes);

/// The rows of a region that lie in a slab of the same tensor: their region, and their bytes in the
/// memory of the whole region. A scalar's are all.
struct RowsInSlab {
  Region region;
  uint64_t begin = 0, count = 0;
};
RowsInSlab rowsInSlab(const Region &region, const Region &slab, size_t elementBytes);

/// Cuts a region into slabs of whole rows, of a few megabytes if rows are not longer. Calls `visit`
/// with each, in order, and the byte where it begins in the region's memory.
void forEachSlab(const Region &region, size_t elementBytes,
                 const std::function<void(const Region &slab, size_t begin)> &visit);

/// Returns true if the rank is the first of the ranks that hold this shard: its coordinate is 0 on
/// every axis that cuts no dimension.
bool holdsFirstCopy(const TensorLayout &layout, std::span<const int64_t> coordinates);

} // namespace weft::rt

#endif // WEFT_RT_PROGRAM_SHARDS_H
