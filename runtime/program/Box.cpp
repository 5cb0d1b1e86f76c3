//===- Box.cpp - copying a box of a larger array ----------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "program/Box.h"

#include <cstring>

using namespace weft::rt;

std::vector<int64_t> weft::rt::rowMajorStrides(std::span<const int64_t> shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t dim = shape.size(); dim-- > 0;) {
    strides[dim] = stride;
    stride *= shape[dim];
  }
  return strides;
}

Box::Box(std::span<const int64_t> shape, std::span<const int64_t> sourceStrides,
         std::span<const int64_t> targetStrides) {
  // From the last dimension outward: a dimension that is contiguous with the inner ones in both
  // arrays lengthens the run; the first other one starts a loop.
  for (size_t dim = shape.size(); dim-- > 0;) {
    if (shape[dim] == 1) {
      continue;
    }
    Loop loop = {shape[dim], sourceStrides[dim], targetStrides[dim]};
    if (loops.empty() && loop.sourceStride == runLength && loop.targetStride == runLength) {
      runLength *= loop.count;
    } else if (!loops.empty() &&
               loop.sourceStride == loops.front().count * loops.front().sourceStride &&
               loop.targetStride == loops.front().count * loops.front().targetStride) {
      loops.front().count *= loop.count;
    } else {
      loops.insert(loops.begin(), loop);
    }
  }
  for (int64_t size : shape) {
    runLength = size == 0 ? 0 : runLength;
  }
}

void Box::copy(const void *source, void *target, size_t elementBytes) const {
  const char *from = static_cast<const char *>(source);
  char *to = static_cast<char *>(target);
  size_t bytes = size_t(runLength) * elementBytes;
  forEachRun([&](int64_t sourceOffset, int64_t targetOffset) {
    std::memcpy(to + targetOffset * elementBytes, from + sourceOffset * elementBytes, bytes);
  });
}
