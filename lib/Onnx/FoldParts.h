//===- FoldParts.h - helpers of folding -----------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_ONNX_FOLDPARTS_H
#define WEFT_LIB_ONNX_FOLDPARTS_H

#include "weft/Onnx/Fold.h"

#include <array>

namespace weft::onnx {

/// The largest number of elements of a constant.
inline constexpr int64_t kMostElements = int64_t(1) << 26;

/// "[2, 3]".
std::string textOf(const std::vector<int64_t> &shape);

/// Allocates the elements of `constant` by its shape. Fails if there are too many.
rt::Status allocateValues(Constant &constant);

/// Computes the shape to which all of `shapes` are broadcast; returns false if there is none.
bool broadcastShapes(const std::vector<const std::vector<int64_t> *> &shapes,
                     std::vector<int64_t> &result);

/// Converts the numbers of `constant` to lengths. Fails if one is negative, too large or unknown.
rt::Result<std::vector<int64_t>> lengthsOf(const Constant &constant);

/// Returns the distance, in elements, between neighbours along each dimension.
std::vector<int64_t> stridesOf(const std::vector<int64_t> &shape);
/// Returns the strides of a tensor of `shape` that is broadcast to the shape `over`.
std::vector<int64_t> spreadStrides(const std::vector<int64_t> &shape,
                                   const std::vector<int64_t> &over);

/// Calls `code` for every index of `shape`, row-major, with the positions of its element in N
/// tensors, whose first positions are `places` and whose strides are `strides`.
template <size_t N, typename Code>
void forEachPlace(const std::vector<int64_t> &shape,
                  const std::array<std::vector<int64_t>, N> &strides, std::array<int64_t, N> places,
                  Code code) {
  std::vector<int64_t> index(shape.size(), 0);
  for (int64_t left = elementCount(shape); left > 0; --left) {
    code(places);
    for (size_t d = shape.size(); d-- > 0;) {
      bool isWithin = ++index[d] < shape[d];
      for (size_t i = 0; i < N; ++i) {
        places[i] += isWithin ? strides[i][d] : (1 - shape[d]) * strides[i][d];
      }
      if (isWithin) {
        break;
      }
      index[d] = 0;
    }
  }
}

/// Returns the element type that has this number in attributes of ONNX nodes.
std::optional<ElementType> elementTypeOfNumber(int64_t number);

/// Returns true for ops that only move elements, such as Reshape, Slice and Concat, which
/// foldMovement evaluates as `fold` does.
bool canFoldMovement(const std::string &op);
rt::Result<std::vector<Constant>> foldMovement(const Node &node,
                                               const std::vector<const Constant *> &inputs);

} // namespace weft::onnx

#endif // WEFT_LIB_ONNX_FOLDPARTS_H
