//===- Constants.cpp - guesses which initializers are constants -----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Onnx/Import.h"

#include <algorithm>
#include <cmath>

namespace weft::onnx {

namespace {

/// Follows initializers to their first uses together with values that depend on the input.
class Uses {
public:
  explicit Uses(const Graph &graph);

  bool isConstant(const Initializer &initializer) const;

private:
  bool isStatic(std::string_view name) const { return !dynamic.contains(name); }
  /// Returns true if a use of `name`, or of a value computed from it alone, is that of a parameter.
  bool isTrained(const std::string &name, int64_t wideDimensions) const;
  /// Returns true if `node` uses `name` like a parameter.
  static bool trains(const Node &node, int64_t wideDimensions);

  std::set<std::string, std::less<>> dynamic;
  std::multimap<std::string, std::pair<const Node *, size_t>, std::less<>> users;
};

Uses::Uses(const Graph &graph) {
  for (const Port &port : graph.inputs) {
    dynamic.insert(port.name);
  }
  for (const Node *node : liveNodes(graph)) {
    bool isDynamic = std::any_of(node->inputs.begin(), node->inputs.end(),
                                 [&](const std::string &name) { return dynamic.contains(name); });
    if (isDynamic && node->op != "Shape") {
      dynamic.insert(node->outputs.begin(), node->outputs.end());
    }
    for (size_t i = 0; i < node->inputs.size(); ++i) {
      users.insert({node->inputs[i], {node, i}});
    }
  }
}

/// Returns true if the op only moves the elements of its first input.
bool movesElements(const std::string &op) {
  static const std::set<std::string> ops = {"Transpose", "Reshape", "Unsqueeze", "Squeeze",
                                            "Identity",  "Cast",    "CastLike",  "Slice",
                                            "Expand",    "Split",   "Flatten",   "Gather"};
  return ops.contains(op);
}

bool Uses::trains(const Node &node, int64_t wideDimensions) {
  static const std::set<std::string> weights = {"MatMul",
                                                "Gemm",
                                                "Conv",
                                                "Einsum",
                                                "LayerNormalization",
                                                "RMSNormalization",
                                                "BatchNormalization",
                                                "Gather",
                                                "Add",
                                                "Sub",
                                                "Concat"};
  // Tables are multiplied as well; a scale has one dimension.
  bool isScale = (node.op == "Mul" || node.op == "Div") && wideDimensions <= 1;
  return isScale || weights.contains(node.op);
}

bool Uses::isTrained(const std::string &name, int64_t wideDimensions) const {
  std::vector<std::string> names{name};
  while (!names.empty()) {
    auto [begin, end] = users.equal_range(names.back());
    names.pop_back();
    for (auto use = begin; use != end; ++use) {
      const auto &[node, input] = use->second;
      if (!isStatic(node->outputs.front())) {
        if (trains(*node, wideDimensions)) {
          return true;
        }
      } else if (input == 0 && movesElements(node->op)) {
        names.insert(names.end(), node->outputs.begin(), node->outputs.end());
      }
    }
  }
  return false;
}

bool Uses::isConstant(const Initializer &initializer) const {
  std::vector<double> values = initializer.read().values;
  bool isMask = std::any_of(values.begin(), values.end(),
                            [](double value) { return value <= -1e4 || std::isinf(value); });
  auto wide = std::count_if(initializer.shape.begin(), initializer.shape.end(),
                            [](int64_t size) { return size > 1; });
  return isMask || !isTrained(initializer.name, wide);
}

} // namespace

std::vector<std::string> guessConstants(const Graph &graph) {
  Uses uses(graph);
  std::set<std::string> used;
  for (const Node *node : liveNodes(graph)) {
    used.insert(node->inputs.begin(), node->inputs.end());
  }
  std::vector<std::string> constants;
  for (const std::string &name : graph.order) {
    const Initializer &initializer = graph.initializers.at(name);
    if (isFloat(initializer.type) && initializer.elementCount() > 1 && used.contains(name) &&
        uses.isConstant(initializer)) {
      constants.push_back(name);
    }
  }
  return constants;
}

} // namespace weft::onnx
