//===- Folded.h - nodes and constants that tests are made of ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_UNITTESTS_ONNX_FOLDED_H
#define WEFT_UNITTESTS_ONNX_FOLDED_H

#include "weft/Onnx/Fold.h"

#include <gtest/gtest.h>

namespace weft::onnx::test {

using Numbers = std::vector<double>;
using Shape = std::vector<int64_t>;

inline Node makeNode(const std::string &op, std::map<std::string, Attribute> attributes = {},
                     size_t outputs = 1) {
  Node node;
  node.op = op;
  node.attributes = std::move(attributes);
  for (size_t i = 0; i < outputs; ++i) {
    node.outputs.push_back("out" + std::to_string(i));
  }
  return node;
}

inline Constant reals(Shape shape, Numbers values) {
  return {ElementType::F32, std::move(shape), std::move(values)};
}
inline Constant integers(Numbers values) {
  return {ElementType::I64, {static_cast<int64_t>(values.size())}, std::move(values)};
}
inline Constant integer(double value) { return {ElementType::I64, {}, {value}}; }

/// Returns all outputs of a fold, which must succeed.
inline std::vector<Constant> foldAll(const Node &node, const std::vector<Constant> &inputs) {
  std::vector<const Constant *> pointers;
  for (const Constant &input : inputs) {
    pointers.push_back(&input);
  }
  rt::Result<std::vector<Constant>> results = fold(node, pointers);
  EXPECT_TRUE(results) << node.op << ": " << results.error().message;
  return results ? *results : std::vector<Constant>(1);
}

inline Constant foldOne(const Node &node, const std::vector<Constant> &inputs) {
  return foldAll(node, inputs).front();
}

/// Returns the error of a fold, which must fail.
inline std::string errorOf(const Node &node, const std::vector<Constant> &inputs) {
  std::vector<const Constant *> pointers;
  for (const Constant &input : inputs) {
    pointers.push_back(&input);
  }
  rt::Result<std::vector<Constant>> results = fold(node, pointers);
  EXPECT_FALSE(results) << node.op;
  return results ? "" : results.error().message;
}

} // namespace weft::onnx::test

#endif // WEFT_UNITTESTS_ONNX_FOLDED_H
