//===- Pieces.cpp - a rank's piece of a tensor and the whole ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/Pieces.h"

#include "core/Box.h"
#include "core/CheckedMath.h"

#include <algorithm>
#include <numeric>

using namespace weft::rt;

uint64_t weft::rt::globalBytes(const TensorLayout &layout) {
  return saturatingMul(elementCount(layout.globalShape), sizeOf(layout.type));
}

/// Bytes from the beginning of the whole tensor to the piece's first element.
static int64_t pieceStart(const TensorLayout &layout, std::span<const Axis> mesh,
                          std::span<const int64_t> coordinates) {
  std::vector<int64_t> offset = localOffset(layout, mesh, coordinates);
  std::vector<int64_t> strides = rowMajorStrides(layout.globalShape);
  return std::inner_product(offset.begin(), offset.end(), strides.begin(), int64_t(0)) *
         int64_t(sizeOf(layout.type));
}

void weft::rt::gatherPiece(const TensorLayout &layout, std::span<const Axis> mesh,
                           std::span<const int64_t> coordinates, const void *local, void *global) {
  std::vector<int64_t> shape = localShape(layout, mesh);
  Box box(shape, rowMajorStrides(shape), rowMajorStrides(layout.globalShape));
  box.copy(local, static_cast<char *>(global) + pieceStart(layout, mesh, coordinates),
           sizeOf(layout.type));
}

void weft::rt::scatterPiece(const TensorLayout &layout, std::span<const Axis> mesh,
                            std::span<const int64_t> coordinates, const void *global, void *local) {
  std::vector<int64_t> shape = localShape(layout, mesh);
  Box box(shape, rowMajorStrides(layout.globalShape), rowMajorStrides(shape));
  box.copy(static_cast<const char *>(global) + pieceStart(layout, mesh, coordinates), local,
           sizeOf(layout.type));
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
