//===- GraphParameters.cpp - which tensors of an ONNX graph are trained ---===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GraphParameters.h"

using namespace weft;

GraphParameters::GraphParameters(const onnx::Graph &graph, const desc::GraphSpec &spec)
    : graph(graph), batchNormGroup(spec.batchNormGroup) {
  std::set<std::string> constants(spec.constants.begin(), spec.constants.end());
  std::set<std::string> used;
  for (const onnx::Node *node : onnx::liveNodes(graph)) {
    used.insert(node->inputs.begin(), node->inputs.end());
    if (node->op == "BatchNormalization") {
      statistics.emplace(node->input(3));
      statistics.emplace(node->input(4));
      variances.emplace(node->input(4));
    }
  }
  for (const std::string &name : graph.order) {
    const onnx::Initializer &initializer = graph.initializers.at(name);
    if (statistics.contains(name)) {
      statisticsInOrder.push_back(&initializer);
    }
    if (onnx::isFloat(initializer.type) && initializer.elementCount() > 1 && used.contains(name) &&
        !constants.contains(name) && !statistics.contains(name)) {
      trained.insert(name);
      inOrder.push_back(&initializer);
    }
  }
}
