//===- Slices.h - ONNX's rules for shapes and slices ----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Folding and the import of nodes as ops share these functions. They keep no state: any number of
// threads may call them. Those that return false set `error`, if they have it.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_ONNX_SLICES_H
#define WEFT_ONNX_SLICES_H

#include "weft-rt/Status.h"
#include "weft/Onnx/Graph.h"

namespace weft::onnx {

/// Converts a whole number; numbers beyond +-2^53 become +-2^53.
int64_t clampedInteger(double value);

/// The range of dimensions that a Shape node returns.
struct ShapeRange {
  int64_t begin = 0, end = 0;
};
ShapeRange shapeRange(const Node &node, int64_t rank);

/// Computes the lengths after a Reshape of a tensor of `lengths` to `asked`: 0 keeps a length
/// (unless `allowZero`), -1 stands for all remaining elements. Lengths may be multiples of the
/// batch.
rt::Result<std::vector<double>> reshapedLengths(const std::vector<double> &lengths,
                                                const std::vector<double> &asked, bool allowZero);

/// Finds the dimensions that an Unsqueeze adds, numbered in its result.
bool newAxes(const std::vector<int64_t> &axes, int64_t rank, std::vector<bool> &isNew);

/// Finds the order of a Transpose: dimension i of the result is `order[i]` of the input.
bool permutationOf(const Node &node, int64_t rank, std::vector<int64_t> &order);

struct Slices {
  std::vector<int64_t> shape, offsets, strides;
};
/// Computes the elements that a Slice of a tensor of `shape` takes. Fails at steps below 1.
rt::Result<Slices> slicesOf(const std::vector<int64_t> &shape, const std::vector<int64_t> &starts,
                            const std::vector<int64_t> &ends,
                            const std::optional<std::vector<int64_t>> &axes,
                            const std::optional<std::vector<int64_t>> &steps);

/// Computes the lengths of the parts of a Split of `length`; `given` is its second input.
rt::Result<std::vector<int64_t>>
splitLengths(const Node &node, const std::optional<std::vector<int64_t>> &given, int64_t length);

} // namespace weft::onnx

#endif // WEFT_ONNX_SLICES_H
