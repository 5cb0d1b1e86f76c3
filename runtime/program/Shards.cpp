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

uint64_t weft::rt::globalBytes(const TensorLayout &layout) {
  return saturatingMul(elementCount(layout.globalShape), sizeOf(layout.type));
}

static Region wholeRegion(const TensorLayout &layout) {
  return {std::vector<int64_t>(layout.globalShape.size(), 0), layout.globalShape};
}

void weft::rt::gatherShard(const TensorLayout &layout, std::span<const Axis> mesh,
                           std::span<const int64_t> coordinates, const void *local, void *global) {
  copyOverlap(localRegion(layout, mesh, coordinates), local, wholeRegion(layout), global,
              sizeOf(layout.type));
}

void weft::rt::scatterShard(const TensorLayout &layout, std::span<const Axis> mesh,
                            std::span<const int64_t> coordinates, const void *global, void *local) {
  Region own = localRegion(layout, mesh, coordinates);
  if (!layout.paddedShape.empty()) {
    std::memset(local, 0, elementCount(own.shape) * sizeOf(layout.type));
  }
  copyOverlap(wholeRegion(layout), global, own, local, sizeOf(layout.type));
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
