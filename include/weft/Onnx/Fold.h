//===- Fold.h - arithmetic that is done at compile time -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Evaluates nodes all of whose inputs are known: shapes and what is made of them,
// masks, tables of positions. Numbers are float64 whatever their type says; whole
// numbers stay whole. Of the batch only products are taken (see Constant.h).
//
// The functions keep no state: any number of threads may call them.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_ONNX_FOLD_H
#define WEFT_ONNX_FOLD_H

#include "weft/Onnx/Graph.h"

namespace weft::onnx {

/// Whether nodes of this op can be evaluated where all inputs are known.
bool canFold(const std::string &op);

/// The outputs of `node`, one constant each; `inputs[i]` is null where input i is left out. On
/// failure says why in `error`: inputs that the op does not take, sums with the batch, or more
/// than 2^26 elements. REQUIRES: `canFold(node.op)`.
std::optional<std::vector<Constant>>
fold(const Node &node, const std::vector<const Constant *> &inputs, std::string &error);

/// The attribute `name`, or `otherwise` where the node lacks it or has one of another type.
int64_t integerAttribute(const Node &node, const std::string &name, int64_t otherwise);
double realAttribute(const Node &node, const std::string &name, double otherwise);
std::string textAttribute(const Node &node, const std::string &name, const char *otherwise);
std::optional<std::vector<int64_t>> integersAttribute(const Node &node, const std::string &name);

/// `axis`, counted from the end where it is negative, as one of `rank`; none where there is none.
std::optional<int64_t> axisOf(int64_t axis, int64_t rank);

} // namespace weft::onnx

#endif // WEFT_ONNX_FOLD_H
