//===- Shards.h - a rank's shard of a tensor and the whole ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_PROGRAM_SHARDS_H
#define WEFT_RT_PROGRAM_SHARDS_H

#include "weft-rt/Program.h"

namespace weft::rt {

/// Bytes of the whole tensor.
uint64_t globalBytes(const TensorLayout &layout);

/// Copies the shard of the rank at `coordinates`, without padding, from its buffer into the whole
/// tensor.
/// Shards of ranks for which `holdsFirstCopy` do not overlap, so they may copy at once.
void gatherShard(const TensorLayout &layout, std::span<const Axis> mesh,
                 std::span<const int64_t> coordinates, const void *local, void *global);

/// The other way round; padding becomes zero.
void scatterShard(const TensorLayout &layout, std::span<const Axis> mesh,
                  std::span<const int64_t> coordinates, const void *global, void *local);

/// A box of a tensor: in each dimension its first index and how many follow. It lies row-major in
/// memory of its own.
struct Region {
  std::vector<int64_t> offset, shape;
};

/// The region that the rank at `coordinates` holds, padding included.
Region localRegion(const TensorLayout &layout, std::span<const Axis> mesh,
                   std::span<const int64_t> coordinates);

/// The same without padding; the shape has a 0 where the rank holds nothing else.
Region dataRegion(const TensorLayout &layout, std::span<const Axis> mesh,
                  std::span<const int64_t> coordinates);

/// Copies what two regions of one tensor have in common from the memory of one to that of the
/// other.
void copyOverlap(const Region &from, const void *source, const Region &to, void *target,
                 size_t elementBytes);

/// Whether the rank is the first of those that hold the same shard: its coordinate is 0 on every
/// axis that cuts no dimension.
bool holdsFirstCopy(const TensorLayout &layout, std::span<const int64_t> coordinates);

} // namespace weft::rt

#endif // WEFT_RT_PROGRAM_SHARDS_H
