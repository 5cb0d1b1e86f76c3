//===- MovedArrays.cpp - elements of arrays in another order --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Arrays.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"

namespace weft::meaning {

std::vector<Part> Arrays::partsOf(ArrayId array) const {
  if (arrays[array].kind == Array::Kind::Moved) {
    return arrays[array].parts;
  }
  Part part;
  part.loops = loopsOf({arrays[array].count});
  part.from.array = array;
  part.from.strides.assign(part.loops.size(), 1);
  return {part};
}

ArrayId Arrays::moved(int64_t count, std::vector<Part> parts) {
  llvm::for_each(parts, normalize);
  llvm::sort(parts, [](const Part &left, const Part &right) { return left.offset < right.offset; });
  const Part &first = parts.front();
  bool isWhole = parts.size() == 1 && first.from.offset == 0 && first.from.shift.isZero() &&
                 arrays[first.from.array].count == count &&
                 llvm::all_of(llvm::zip(first.loops, first.from.strides), [](auto pair) {
                   return std::get<0>(pair).stride == std::get<1>(pair);
                 });
  if (isWhole) {
    return first.from.array;
  }
  Array array;
  Words words;
  words << uint64_t('M') << uint64_t(count);
  for (const Part &part : parts) {
    words << uint64_t(part.offset) << arrays[part.from.array].print << uint64_t(part.from.offset)
          << part.from.shift << part.from.strides;
    for (const Loop &loop : part.loops) {
      words << uint64_t(loop.extent) << uint64_t(loop.stride);
    }
  }
  array.print = words.print();
  array.count = count;
  array.kind = Array::Kind::Moved;
  array.parts = std::move(parts);
  return numberOf(std::move(array));
}

std::optional<ArrayId> Arrays::transpose(ArrayId array, llvm::ArrayRef<int64_t> shape,
                                         llvm::ArrayRef<int64_t> order) {
  Sizes strides(shape.size(), 1), moving;
  int64_t stride = 1;
  for (int64_t dim : llvm::reverse(order)) {
    strides[dim] = stride;
    stride *= shape[dim];
  }
  for (auto [size, own] : llvm::zip_equal(shape, strides)) {
    if (size != 1) {
      moving.push_back(own);
    }
  }
  std::vector<Part> parts = partsOf(array);
  for (Part &part : parts) {
    if (!restride(part, loopsOf(shape), moving)) {
      return std::nullopt;
    }
  }
  return moved(arrays[array].count, std::move(parts));
}

std::optional<ArrayId> Arrays::concat(llvm::ArrayRef<ArrayId> operands,
                                      llvm::ArrayRef<Sizes> shapes, int64_t dim) {
  int64_t length = 0, at = 0, count = 0;
  for (const Sizes &shape : shapes) {
    length += shape[dim];
    count += productOf(shape);
  }
  std::vector<Part> parts;
  for (auto [operand, shape] : llvm::zip_equal(operands, shapes)) {
    Sizes sizes = around(shape, dim);
    int64_t row = sizes[1] * sizes[2];
    for (Part part : partsOf(operand)) {
      Sizes strides;
      if (sizes[0] != 1) {
        strides.push_back(length * sizes[2]);
      }
      if (row != 1) {
        strides.push_back(1);
      }
      if (!restride(part, loopsOf({sizes[0], row}), strides)) {
        return std::nullopt;
      }
      part.offset += at * sizes[2];
      parts.push_back(std::move(part));
    }
    at += shape[dim];
  }
  return moved(count, std::move(parts));
}

/// What of the part lies in `length` indices of the loop `dim` of `dims`, from `start` on; a part
/// of no elements if nothing does.
static std::optional<Part> crop(Part part, llvm::ArrayRef<Loop> dims, size_t dim, int64_t start,
                                int64_t length, llvm::ArrayRef<int64_t> strides) {
  auto aligned = align(std::move(part), dims);
  if (!aligned) {
    return std::nullopt;
  }
  auto &[result, place] = *aligned;
  int64_t first = place.starts[dim], last = first, stride = 0;
  size_t loop = result.loops.size(), found = 0;
  for (auto [number, step] : llvm::enumerate(place.steps)) {
    if (step.second != 0 && step.first == dim) {
      loop = number;
      stride = result.from.strides[number];
      last += (result.loops[number].extent - 1) * step.second;
      ++found;
    }
  }
  int64_t from = std::max(first, start), to = std::min(last + 1, start + length);
  bool isCut = from > first || to <= last;
  if (from < to && isCut && (found != 1 || place.steps[loop].second != 1)) {
    return std::nullopt;
  }
  place.starts[dim] = from - start;
  result.from.offset += (from - first) * stride;
  move(result, place, strides);
  if (to <= from) {
    result.loops = {{0, 1}};
    result.from.strides = {1};
  } else if (isCut) {
    result.loops[loop].extent = to - from;
  }
  return result;
}

std::optional<ArrayId> Arrays::part(ArrayId array, llvm::ArrayRef<int64_t> shape, int64_t dim,
                                    int64_t start, int64_t length) {
  Sizes sizes = around(shape, dim);
  if (sizes[1] == length) {
    return array;
  }
  llvm::SmallVector<Loop, 4> dims = loopsOf(sizes);
  Sizes strides;
  for (auto [size, stride] :
       llvm::zip_equal(sizes, Sizes{length * sizes[2], sizes[2], int64_t(1)})) {
    if (size != 1) {
      strides.push_back(stride);
    }
  }
  std::vector<Part> parts;
  for (const Part &own : partsOf(array)) {
    std::optional<Part> left = crop(own, dims, sizes[0] != 1 ? 1 : 0, start, length, strides);
    if (!left) {
      return std::nullopt;
    }
    if (left->loops.empty() || left->loops.front().extent != 0) {
      parts.push_back(std::move(*left));
    }
  }
  return moved(sizes[0] * length * sizes[2], std::move(parts));
}

std::optional<ArrayId> Arrays::shard(ArrayId array, llvm::ArrayRef<int64_t> shape, int64_t dim,
                                     int64_t count, const Print &place) {
  Sizes sizes = around(shape, dim);
  int64_t row = sizes[1] / count * sizes[2];
  llvm::SmallVector<Loop, 4> dims = loopsOf({sizes[0], count, row});
  size_t number = sizes[0] != 1 ? 1 : 0;
  Sizes strides;
  if (sizes[0] != 1) {
    strides.push_back(row);
  }
  strides.push_back(0);
  if (row != 1) {
    strides.push_back(1);
  }
  std::vector<Part> parts = partsOf(array);
  for (Part &part : parts) {
    auto aligned = align(std::move(part), dims);
    if (!aligned) {
      return std::nullopt;
    }
    part = std::move(aligned->first);
    // The rank's index, in place of a loop over all.
    std::optional<size_t> own;
    for (auto [loop, step] : llvm::enumerate(aligned->second.steps)) {
      if (step == std::pair<size_t, int64_t>(number, 1) && part.loops[loop].extent == count) {
        own = loop;
      }
    }
    if (!own) {
      return std::nullopt;
    }
    part.from.shift = part.from.shift + place * Print::of(part.from.strides[*own]);
    part.from.strides.erase(part.from.strides.begin() + *own);
    part.loops.erase(part.loops.begin() + *own);
    aligned->second.steps.erase(aligned->second.steps.begin() + *own);
    move(part, aligned->second, strides);
  }
  return moved(arrays[array].count / count, std::move(parts));
}

/// The same part, of an array that holds just its elements, in the order that they have in their
/// source, if their place there depends on the rank.
Part Arrays::withoutShift(Part part) {
  if (part.from.shift.isZero()) {
    return part;
  }
  auto order = llvm::to_vector(llvm::seq<size_t>(0, part.loops.size()));
  llvm::sort(order, [&](size_t left, size_t right) {
    return part.from.strides[left] < part.from.strides[right];
  });
  Part dense = part;
  dense.offset = 0;
  int64_t count = 1;
  for (size_t loop : order) {
    dense.loops[loop].stride = count;
    count *= dense.loops[loop].extent;
  }
  for (auto [stride, loop] : llvm::zip_equal(part.from.strides, dense.loops)) {
    stride = loop.stride;
  }
  part.from.array = moved(count, {dense});
  part.from.offset = 0;
  part.from.shift = {};
  return part;
}

ArrayId Arrays::mapSources(ArrayId array, llvm::function_ref<ArrayId(ArrayId)> function,
                           bool mayShift) {
  if (arrays[array].kind != Array::Kind::Moved) {
    return function(array);
  }
  std::vector<Part> parts = arrays[array].parts;
  for (Part &part : parts) {
    part = mayShift ? part : withoutShift(part);
    part.from.array = function(part.from.array);
  }
  return moved(arrays[array].count, std::move(parts));
}

ArrayId Arrays::stack(ArrayId array, int64_t count, llvm::function_ref<ArrayId(ArrayId)> gather) {
  std::vector<Part> parts = partsOf(array);
  for (Part &part : parts) {
    part = withoutShift(std::move(part));
    int64_t elements = arrays[part.from.array].count;
    part.from.array = gather(part.from.array);
    part.loops.insert(part.loops.begin(), {count, arrays[array].count});
    part.from.strides.insert(part.from.strides.begin(), elements);
  }
  return moved(arrays[array].count * count, std::move(parts));
}

} // namespace weft::meaning
