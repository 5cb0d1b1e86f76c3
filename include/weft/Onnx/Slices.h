//===- Slices.h - what ONNX means by its shapes and slices ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Shared by what is folded and what becomes ops of the dialect. The functions keep
// no state: any number of threads may call them.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_ONNX_SLICES_H
#define WEFT_ONNX_SLICES_H

#include "weft/Onnx/Graph.h"

namespace weft::onnx {

/// A whole number; ends beyond 2^53 become +-2^53.
int64_t clampedInteger(double value);

/// The dimensions that a Shape node asks for.
struct ShapeRange {
  int64_t begin = 0, end = 0;
};
ShapeRange shapeRange(const Node &node, int64_t rank);

/// What a Reshape to `asked` makes of a tensor of `lengths`: 0 keeps a length (unless `allowZero`),
/// -1 is what is left. Lengths may be multiples of the batch.
bool reshapedLengths(const std::vector<double> &lengths, const std::vector<double> &asked,
                     bool allowZero, std::vector<double> &result, std::string &error);

/// Which of the dimensions after an Unsqueeze are new.
bool newAxes(const std::vector<int64_t> &axes, int64_t rank, std::vector<bool> &isNew);

/// The order of a Transpose: dimension i of the result is `order[i]` of the input.
bool permutationOf(const Node &node, int64_t rank, std::vector<int64_t> &order);

struct Slices {
  std::vector<int64_t> shape, offsets, strides;
};
/// What a Slice takes of a tensor of `shape`. Fails at steps below 1.
bool slicesOf(const std::vector<int64_t> &shape, const std::vector<int64_t> &starts,
              const std::vector<int64_t> &ends, const std::optional<std::vector<int64_t>> &axes,
              const std::optional<std::vector<int64_t>> &steps, Slices &result, std::string &error);

/// Lengths of the parts of a Split of `length`; `given` is its second input.
bool splitLengths(const Node &node, const std::optional<std::vector<int64_t>> &given,
                  int64_t length, std::vector<int64_t> &lengths, std::string &error);

} // namespace weft::onnx

#endif // WEFT_ONNX_SLICES_H
