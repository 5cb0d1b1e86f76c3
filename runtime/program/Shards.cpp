//===- Shards.cpp - copies between a rank's shard and the whole tensor ----===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "program/Shards.h"

#include "program/Box.h"
#include "support/CheckedMath.h"

#include <algorithm>
#include <cstring>

using namespace weft::rt;

Region weft::rt::wholeRegion(std::span<const int64_t> shape) {
  return {std::vector<int64_t>(shape.size()), {shape.begin(), shape.end()}};
}

Region weft::rt::localRegion(const TensorLayout &layout, std::span<const Axis> mesh,
                             std::span<const int64_t> coordinates) {
  return {localOffset(layout, mesh, coordinates), localShape(layout, mesh)};
}

Region weft::rt::dataRegion(const TensorLayout &layout, std::span<const Axis> mesh,
                            std::span<const int64_t> coordinates) {
  Region region = localRegion(layout, mesh, coordinates);
  for (size_t dim = 0; dim < region.shape.size(); ++dim) {
    int64_t left = std::max(layout.globalShape[dim] - region.offset[dim], int64_t(0));
    region.shape[dim] = std::min(region.shape[dim], left);
  }
  return region;
}

void weft::rt::copyOverlap(const Region &from, const void *source, const Region &to, void *target,
                           size_t elementBytes) {
  std::vector<int64_t> shape(from.shape.size());
  std::vector<int64_t> fromStrides = rowMajorStrides(from.shape);
  std::vector<int64_t> toStrides = rowMajorStrides(to.shape);
  int64_t fromStart = 0, toStart = 0;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    int64_t begin = std::max(from.offset[dim], to.offset[dim]);
    int64_t end = std::min(from.offset[dim] + from.shape[dim], to.offset[dim] + to.shape[dim]);
    if (begin >= end) {
      return;
    }
    shape[dim] = end - begin;
    fromStart += (begin - from.offset[dim]) * fromStrides[dim];
    toStart += (begin - to.offset[dim]) * toStrides[dim];
  }
  Box(shape, fromStrides, toStrides)
      .copy(static_cast<const char *>(source) + fromStart * int64_t(elementBytes),
            static_cast<char *>(target) + toStart * int64_t(elementBytes), elementBytes);
}

RowsInSlab weft::rt::rowsInSlab(const Region &region, const Region &slab, size_t elementBytes) {
  RowsInSlab rows = {region};
  uint64_t bytes = elementCount(region.shape) * elementBytes;
  if (region.shape.empty() || bytes == 0) {
    rows.count = bytes;
    return rows;
  }
  uint64_t rowBytes = bytes / uint64_t(region.shape[0]);
  int64_t begin = std::max(region.offset[0], slab.offset[0]);
  int64_t end = std::min(region.offset[0] + region.shape[0], slab.offset[0] + slab.shape[0]);
  int64_t count = std::max(end - begin, int64_t(0));
  rows.region.offset[0] = begin;
  rows.region.shape[0] = count;
  rows.begin = count > 0 ? uint64_t(begin - region.offset[0]) * rowBytes : 0;
  rows.count = uint64_t(count) * rowBytes;
  return rows;
}

void weft::rt::forEachSlab(const Region &region, size_t elementBytes,
                           const std::function<void(const Region &slab, size_t begin)> &visit) {
  constexpr size_t kSlab = size_t(8) << 20;
  size_t bytes = elementCount(region.shape) * elementBytes;
  if (region.shape.empty() || bytes <= kSlab) {
    return visit(region, 0);
  }
  int64_t rows = region.shape[0];
  size_t rowBytes = bytes / size_t(rows);
  auto step = int64_t(std::max<size_t>(kSlab / rowBytes, 1));
  Region slab = region;
  for (int64_t row = 0; row < rows; row += step) {
    slab.offset[0] = region.offset[0] + row;
    slab.shape[0] = std::min(step, rows - row);
    visit(slab, size_t(row) * rowBytes);
  }
}

bool weft::rt::holdsFirstCopy(const TensorLayout &layout, std::span<const int64_t> coordinates) {
  for (uint32_t axis = 0; axis < coordinates.size(); ++axis) {
    bool cuts = std::any_of(layout.dimAxes.begin(), layout.dimAxes.end(), [&](const auto &axes) {
      return std::find(axes.begin(), axes.end(), axis) != axes.end();
    });
    if (!cuts && coordinates[axis] != 0) {
      return false;
    }
  }
  return true;
}
