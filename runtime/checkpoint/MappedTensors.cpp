//===- MappedTensors.cpp - copies from tensors of mapped files ------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "checkpoint/MappedTensors.h"

#include "support/CheckedMath.h"

using namespace weft::rt;

/// Copies the intersection and releases all rows of the file that have a part in it.
void MappedTensor::copySlab(const Region &slab, void *target, size_t elementBytes) const {
  copyOverlap(region, tensor->data.data(), slab, target, elementBytes);
  RowsInSlab rows = rowsInSlab(region, slab, elementBytes);
  file->mapped().release(tensor->data.subspan(rows.begin, rows.count));
}

void MappedTensor::copy(const Region &wanted, void *target, size_t elementBytes) const {
  forEachSlab(wanted, elementBytes, [&](const Region &slab, size_t begin) {
    copySlab(slab, static_cast<char *>(target) + begin, elementBytes);
  });
}

void MappedTensor::copyInSlabs(const Region &wanted, size_t elementBytes,
                               const std::function<void(std::span<const char>)> &visit) const {
  std::vector<char> bytes;
  forEachSlab(wanted, elementBytes, [&](const Region &slab, size_t) {
    bytes.assign(elementCount(slab.shape) * elementBytes, 0);
    copySlab(slab, bytes.data(), elementBytes);
    visit(bytes);
  });
}
