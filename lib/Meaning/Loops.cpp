//===- Loops.cpp - elements by the indices of loops -----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Loops.h"

#include "llvm/ADT/STLExtras.h"

namespace weft::meaning {

Fit fit(int64_t offset, llvm::ArrayRef<int64_t> extents, llvm::ArrayRef<int64_t> strides,
        llvm::ArrayRef<Loop> loops, Place &place) {
  Sizes last;
  for (const Loop &loop : loops) {
    place.starts.push_back(offset / loop.stride);
    last.push_back(place.starts.back());
    offset %= loop.stride;
  }
  if (offset != 0) {
    return Fit::No;
  }
  for (size_t number = 0; number < extents.size(); ++number) {
    int64_t extent = extents[number], stride = strides[number];
    if (extent == 1 || stride == 0) {
      place.steps.emplace_back(0, 0);
      continue;
    }
    size_t in = 0;
    while (in < loops.size() && loops[in].stride > stride) {
      ++in;
    }
    if (in == loops.size() || stride % loops[in].stride != 0) {
      return Fit::No;
    }
    int64_t step = stride / loops[in].stride;
    if ((extent - 1) * step >= loops[in].extent) {
      int64_t inner = loops[in].extent / step;
      bool isSplit = in > 0 && inner > 1 && loops[in].extent % step == 0 && extent % inner == 0 &&
                     loops[in].extent * loops[in].stride == loops[in - 1].stride;
      place.loop = number;
      place.inner = inner;
      return isSplit ? Fit::Split : Fit::No;
    }
    place.steps.emplace_back(in, step);
    last[in] += (extent - 1) * step;
  }
  for (auto [index, loop] : llvm::zip_equal(last, loops)) {
    if (index >= loop.extent) {
      return Fit::No;
    }
  }
  return Fit::Yes;
}

void splitLoop(Sizes &values, size_t loop, int64_t outer, int64_t inner) {
  values[loop] = outer;
  values.insert(values.begin() + loop + 1, inner);
}

llvm::SmallVector<Loop, 4> loopsOf(llvm::ArrayRef<int64_t> sizes) {
  llvm::SmallVector<Loop, 4> loops;
  int64_t stride = 1;
  for (int64_t size : llvm::reverse(sizes)) {
    if (size != 1) {
      loops.push_back({size, stride});
    }
    stride *= size;
  }
  std::reverse(loops.begin(), loops.end());
  return loops;
}

int64_t productOf(llvm::ArrayRef<int64_t> sizes) {
  int64_t product = 1;
  for (int64_t size : sizes) {
    product *= size;
  }
  return product;
}

Sizes around(llvm::ArrayRef<int64_t> shape, int64_t dim) {
  return {productOf(shape.take_front(dim)), shape[dim], productOf(shape.drop_front(dim + 1))};
}

void normalize(Part &part) {
  llvm::SmallVector<size_t> order;
  for (size_t number = 0; number < part.loops.size(); ++number) {
    if (part.loops[number].extent != 1) {
      order.push_back(number);
    }
  }
  llvm::sort(order, [&](size_t left, size_t right) {
    return part.loops[left].stride > part.loops[right].stride;
  });
  llvm::SmallVector<Loop, 4> loops;
  Sizes strides;
  for (size_t number : order) {
    auto [extent, stride] = part.loops[number];
    int64_t from = part.from.strides[number];
    if (!loops.empty() && loops.back().stride == extent * stride &&
        strides.back() == extent * from) {
      loops.back() = {loops.back().extent * extent, stride};
      strides.back() = from;
    } else {
      loops.push_back({extent, stride});
      strides.push_back(from);
    }
  }
  part.loops = std::move(loops);
  part.from.strides = std::move(strides);
}

std::optional<std::pair<Part, Place>> align(Part part, llvm::ArrayRef<Loop> dims) {
  while (true) {
    Sizes extents, strides;
    for (const Loop &loop : part.loops) {
      extents.push_back(loop.extent);
      strides.push_back(loop.stride);
    }
    Place place;
    Fit found = fit(part.offset, extents, strides, dims, place);
    if (found == Fit::Yes) {
      return std::pair(std::move(part), std::move(place));
    }
    if (found == Fit::No) {
      return std::nullopt;
    }
    auto [extent, stride] = part.loops[place.loop];
    int64_t from = part.from.strides[place.loop];
    part.loops[place.loop] = {extent / place.inner, stride * place.inner};
    part.loops.insert(part.loops.begin() + place.loop + 1, {place.inner, stride});
    splitLoop(part.from.strides, place.loop, from * place.inner, from);
  }
}

void move(Part &part, const Place &place, llvm::ArrayRef<int64_t> strides) {
  part.offset = 0;
  for (auto [start, stride] : llvm::zip_equal(place.starts, strides)) {
    part.offset += start * stride;
  }
  for (auto [loop, step] : llvm::zip_equal(part.loops, place.steps)) {
    loop.stride = step.second == 0 ? 0 : step.second * strides[step.first];
  }
}

bool restride(Part &part, llvm::ArrayRef<Loop> dims, llvm::ArrayRef<int64_t> strides) {
  auto aligned = align(std::move(part), dims);
  if (!aligned) {
    return false;
  }
  part = std::move(aligned->first);
  move(part, aligned->second, strides);
  return true;
}

} // namespace weft::meaning
