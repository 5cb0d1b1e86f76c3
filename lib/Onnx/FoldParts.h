//===- FoldParts.h - what folding has in common ---------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_ONNX_FOLDPARTS_H
#define WEFT_LIB_ONNX_FOLDPARTS_H

#include "weft/Onnx/Fold.h"

#include <functional>

namespace weft::onnx {

/// "[2, 3]".
std::string textOf(const std::vector<int64_t> &shape);

/// Makes room for the elements of `constant`'s shape. Fails where they are too many.
bool allocateValues(Constant &constant, std::string &error);

/// The shape that all of `shapes` are spread to; false where there is none.
bool broadcastShapes(const std::vector<const std::vector<int64_t> *> &shapes,
                     std::vector<int64_t> &result);

/// The numbers of `constant` as lengths. Fails where one is negative, too large or unknown.
bool lengthsOf(const Constant &constant, std::vector<int64_t> &lengths, std::string &error);

/// Calls `code` with every index of `shape`, row-major, until it returns false; whether it never
/// did.
bool forEachIndex(const std::vector<int64_t> &shape,
                  const std::function<bool(const std::vector<int64_t> &)> &code);

/// The type that an attribute of an ONNX node numbers so.
std::optional<ElementType> elementTypeOfNumber(int64_t number);

/// The ops that move elements and compute nothing: Reshape, Slice, Concat and their like.
bool canFoldMovement(const std::string &op);
std::optional<std::vector<Constant>>
foldMovement(const Node &node, const std::vector<const Constant *> &inputs, std::string &error);

} // namespace weft::onnx

#endif // WEFT_LIB_ONNX_FOLDPARTS_H
