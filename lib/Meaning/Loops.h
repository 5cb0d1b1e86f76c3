//===- Loops.h - elements by the indices of loops -------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_MEANING_LOOPS_H
#define WEFT_LIB_MEANING_LOOPS_H

#include "Prints.h"

#include <optional>
#include <utility>

namespace weft::meaning {

using ArrayId = uint32_t;
using Sizes = llvm::SmallVector<int64_t, 6>;

/// Elements of an array, for the indices of loops: `offset + shift + sum(index * stride)`.
struct Access {
  ArrayId array = 0;
  int64_t offset = 0;
  /// The part of the offset that is not a known number, such as a rank's place.
  Print shift;
  /// One for each loop.
  Sizes strides;
};

/// `extent` iterations that move by `stride` elements.
struct Loop {
  int64_t extent, stride;
};

/// A part of a moved array: for the indices of `loops`, its element `offset + sum(index * stride)`
/// is that of `from`.
struct Part {
  int64_t offset = 0;
  llvm::SmallVector<Loop, 4> loops;
  Access from;
};

/// Whether elements lie in loops: they do, or would if a loop were split, or do not.
enum class Fit : uint8_t { Yes, Split, No };

/// Where elements lie in loops: in each the first index, and for each of their own loops the loop
/// in which it moves, and by how many indices.
struct Place {
  Sizes starts;
  llvm::SmallVector<std::pair<size_t, int64_t>> steps;
  /// For Split: the loop, and the extent of its inner part.
  size_t loop = 0;
  int64_t inner = 0;
};

/// Finds where the elements `offset + sum(index * stride)` lie in `loops`, which are in the order
/// of falling strides.
Fit fit(int64_t offset, llvm::ArrayRef<int64_t> extents, llvm::ArrayRef<int64_t> strides,
        llvm::ArrayRef<Loop> loops, Place &place);
void splitLoop(Sizes &values, size_t loop, int64_t outer, int64_t inner);
/// The loops of a dense array with these sizes, without those of one index.
llvm::SmallVector<Loop, 4> loopsOf(llvm::ArrayRef<int64_t> sizes);
int64_t productOf(llvm::ArrayRef<int64_t> sizes);
/// The sizes before, of and after a dimension.
Sizes around(llvm::ArrayRef<int64_t> shape, int64_t dim);
/// Puts loops in the order of falling strides, and makes one of those that can be one.
void normalize(Part &part);
/// The part with each of its loops in one of `dims`; none if that cannot be.
std::optional<std::pair<Part, Place>> align(Part part, llvm::ArrayRef<Loop> dims);
/// Gives the part, whose place is known, other strides along the dimensions in which it lies.
void move(Part &part, const Place &place, llvm::ArrayRef<int64_t> strides);
/// Moves what lies in `dims` to other strides; false if it cannot be said with loops.
bool restride(Part &part, llvm::ArrayRef<Loop> dims, llvm::ArrayRef<int64_t> strides);

} // namespace weft::meaning

#endif // WEFT_LIB_MEANING_LOOPS_H
