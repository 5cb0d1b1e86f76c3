//===- Shards.h - copies between a rank's shard and the whole tensor ------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_PROGRAM_SHARDS_H
#define WEFT_RT_PROGRAM_SHARDS_H

#include "weft-rt/Program.h"

namespace weft::rt {

/// Returns the bytes of the whole tensor, without padding.
uint64_t globalBytes(const TensorLayout &layout);

/// Copies the shard of the rank at `coordinates`, without padding, from its buffer into the whole
/// tensor. Shards of ranks for which `holdsFirstCopy` is true do not overlap, so several threads
/// may copy them at once.
void gatherShard(const TensorLayout &layout, std::span<const Axis> mesh,
                 std::span<const int64_t> coordinates, const void *local, void *global);

/// Copies the shard of the rank at `coordinates` from the whole tensor into its buffer; fills
/// padding with zeros.
void scatterShard(const TensorLayout &layout, std::span<const Axis> mesh,
                  std::span<const int64_t> coordinates, const void *global, void *local);

/// A box of a tensor: the first index and the length in each dimension. It lies row-major in memory
/// of its own.
struct Region {
  std::vector<int64_t> offset, shape;
};

/// Returns the region that the rank at `coordinates` holds, padding included.
Region localRegion(const TensorLayout &layout, std::span<const Axis> mesh,
                   std::span<const int64_t> coordinates);

/// Returns the same region without padding; its shape has a 0 if the rank holds only padding.
Region dataRegion(const TensorLayout &layout, std::span<const Axis> mesh,
                  std::span<const int64_t> coordinates);

/// Copies the intersection of two regions of one tensor from the memory of `from` to that of `to`.
void copyOverlap(const Region &from, const void *source, const Region &to, void *target,
                 size_t elementBytes);

/// Returns true if the rank is the first of the ranks that hold this shard: its coordinate is 0 on
/// every axis that cuts no dimension.
bool holdsFirstCopy(const TensorLayout &layout, std::span<const int64_t> coordinates);

} // namespace weft::rt

#endif // WEFT_RT_PROGRAM_SHARDS_H
