//===- MappedTensors.h - copies from tensors of mapped files --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tensor is copied a few megabytes at a time, and what was copied is released from
// memory, so that loading needs no memory for the file beside that of the rank.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_CHECKPOINT_MAPPEDTENSORS_H
#define WEFT_RT_CHECKPOINT_MAPPEDTENSORS_H

#include "program/Shards.h"
#include "support/Safetensors.h"

namespace weft::rt {

/// A tensor of a file, or a part of it.
struct MappedTensor {
  const SafetensorsFile *file = nullptr;
  const SafetensorsFile::Tensor *tensor = nullptr;
  /// The region of the whole tensor that the file has.
  Region region;

  /// Copies the intersection with `wanted` to `target`, the memory of `wanted`.
  void copy(const Region &wanted, void *target, size_t elementBytes) const;

  /// Calls `visit` with the elements of `wanted` in order, in slabs; those that are not in the
  /// intersection are zero.
  void copyInSlabs(const Region &wanted, size_t elementBytes,
                   const std::function<void(std::span<const char> bytes)> &visit) const;

private:
  void copySlab(const Region &slab, void *target, size_t elementBytes) const;
};

} // namespace weft::rt

#endif // WEFT_RT_CHECKPOINT_MAPPEDTENSORS_H
