//===- ConstantsTest.cpp - tests of initializers ----------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Onnx/Import.h"

#include <gtest/gtest.h>

#include <cstring>

using namespace weft::onnx;

namespace {

/// A graph from nodes and tensors, whose input is "x" and output "y".
struct GraphMaker {
  Graph graph;

  GraphMaker() {
    graph.inputs = {{"x", ElementType::F32, {}}};
    graph.outputs = {{"y", ElementType::F32, {}}};
  }
  void tensor(const std::string &name, std::vector<int64_t> shape, float first = 0.5f) {
    auto values = std::make_shared<std::vector<float>>(elementCount(shape), 0.25f);
    values->front() = first;
    graph.storage.push_back(values);
    std::span<const char> bytes(reinterpret_cast<const char *>(values->data()),
                                values->size() * sizeof(float));
    graph.initializers[name] = {name, ElementType::F32, shape, bytes};
    graph.order.push_back(name);
  }
  void node(const std::string &op, std::vector<std::string> inputs, const std::string &output) {
    Node node;
    node.number = static_cast<int64_t>(graph.nodes.size());
    node.op = op;
    node.inputs = std::move(inputs);
    node.outputs = {output};
    graph.nodes.push_back(node);
  }
  std::vector<std::string> constants() const { return guessConstants(graph); }
};

using Names = std::vector<std::string>;

} // namespace

TEST(Constants, MatmulsAndScalesAreTrained) {
  GraphMaker made;
  made.tensor("weight", {4, 4});
  made.tensor("bias", {4});
  made.tensor("scale", {4});
  made.tensor("table", {4, 4});
  made.node("MatMul", {"x", "weight"}, "a");
  made.node("Add", {"a", "bias"}, "b");
  made.node("Mul", {"b", "scale"}, "c");
  made.node("Mul", {"c", "table"}, "y");
  EXPECT_EQ(made.constants(), Names({"table"}));
}

TEST(Constants, MasksAreNotTrained) {
  GraphMaker made;
  made.tensor("mask", {4, 4}, -1e9f);
  made.tensor("positions", {4, 4});
  made.node("Add", {"x", "mask"}, "a");
  made.node("Add", {"a", "positions"}, "y");
  EXPECT_EQ(made.constants(), Names({"mask"}));
}

TEST(Constants, WhatIsMovedIsFollowed) {
  GraphMaker made;
  made.tensor("weight", {4, 4});
  made.tensor("numbers", {4, 4});
  made.node("Transpose", {"weight"}, "turned");
  made.node("Reshape", {"turned"}, "shaped");
  made.node("MatMul", {"x", "shaped"}, "a");
  made.node("Exp", {"numbers"}, "computed");
  made.node("MatMul", {"a", "computed"}, "y");
  EXPECT_EQ(made.constants(), Names({"numbers"}));
}

TEST(Constants, WhatTheLogitsDoNotNeedIsNotLooked) {
  GraphMaker made;
  made.tensor("unused", {4, 4});
  made.node("Mul", {"x", "unused"}, "dead");
  made.node("Relu", {"x"}, "y");
  EXPECT_EQ(made.constants(), Names());
}

TEST(Constants, ALongChainDoesNotReachTheStack) {
  GraphMaker made;
  made.tensor("weight", {4, 4});
  std::string last = "weight";
  for (int i = 0; i < 100000; ++i) {
    std::string next = "t" + std::to_string(i);
    made.node("Identity", {last}, next);
    last = next;
  }
  made.node("MatMul", {"x", last}, "y");
  EXPECT_EQ(made.constants(), Names());
}
