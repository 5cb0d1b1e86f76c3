//===- Fold.h - evaluates nodes at compile time ---------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Evaluates nodes whose inputs are all known: arithmetic on shapes, masks, tables of positions.
// Numbers of any type are computed in float64; whole numbers stay whole. The batch (see Constant.h)
// may only be multiplied.
//
// The functions keep no state: any number of threads may call them.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_ONNX_FOLD_H
#define WEFT_ONNX_FOLD_H

#include "weft-rt/Status.h"
#include "weft/Onnx/Graph.h"

namespace weft::onnx {

/// Returns true if nodes of this op can be evaluated once all inputs are known.
bool canFold(const std::string &op);

/// Returns the outputs of `node`, one constant each; `inputs[i]` is null if input i is omitted.
/// Fails if the inputs are invalid for the op, the batch is added to something, or there are more
/// than 2^26 elements. REQUIRES: `canFold(node.op)`.
rt::Result<std::vector<Constant>> fold(const Node &node,
                                       const std::vector<const Constant *> &inputs);

/// Each returns the attribute `name`, or `otherwise` if the node lacks it or it has another type.
int64_t integerAttribute(const Node &node, const std::string &name, int64_t otherwise);
double realAttribute(const Node &node, const std::string &name, double otherwise);
std::string textAttribute(const Node &node, const std::string &name, const char *otherwise);
std::optional<std::vector<int64_t>> integersAttribute(const Node &node, const std::string &name);

/// Returns `axis` as a dimension of `rank`, counting from the end if it is negative; nothing if it
/// is out of range.
std::optional<int64_t> axisOf(int64_t axis, int64_t rank);

} // namespace weft::onnx

#endif // WEFT_ONNX_FOLD_H
