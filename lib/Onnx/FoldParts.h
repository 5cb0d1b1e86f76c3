//===- FoldParts.h - what folding has in common ---------------------------===//
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

/// The most that a constant may have.
inline constexpr int64_t kMostElements = int64_t(1) << 26;

/// "[2, 3]".
std::string textOf(const std::vector<int64_t> &shape);

/// Makes room for the elements of `constant`'s shape. Fails where they are too many.
bool allocateValues(Constant &constant, std::string &error);

/// The shape that all of `shapes` are spread to; false where there is none.
bool broadcastShapes(const std::vector<const std::vector<int64_t> *> &shapes,
                     std::vector<int64_t> &result);

/// The numbers of `constant` as lengths. Fails where one is negative, too large or unknown.
bool lengthsOf(const Constant &constant, std::vector<int64_t> &lengths, std::string &error);

/// How far neighbours along each dimension lie from one another.
std::vector<int64_t> stridesOf(const std::vector<int64_t> &shape);
/// The same of a tensor of `shape` that is spread over one of `over`, as `broadcastShapes` says.
std::vector<int64_t> spreadStrides(const std::vector<int64_t> &shape,
                                   const std::vector<int64_t> &over);

/// Calls `code` for every index of `shape`, row-major, with its place in each of N tensors, which
/// begin at `places` and have these strides.
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

/// The type that an attribute of an ONNX node numbers so.
std::optional<ElementType> elementTypeOfNumber(int64_t number);

/// The ops that move elements and compute nothing: Reshape, Slice, Concat and their like.
bool canFoldMovement(const std::string &op);
std::optional<std::vector<Constant>>
foldMovement(const Node &node, const std::vector<const Constant *> &inputs, std::string &error);

} // namespace weft::onnx

#endif // WEFT_LIB_ONNX_FOLDPARTS_H
