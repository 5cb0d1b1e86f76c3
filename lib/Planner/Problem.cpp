//===- Problem.cpp - what choices cost ------------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Planner/Problem.h"

#include <algorithm>
#include <cmath>

namespace weft::planner {

static std::string nameOf(const Problem &problem, uint32_t node, uint32_t option) {
  return "'" + problem.nodes[node].name + "' as '" + problem.nodes[node].options[option].name + "'";
}

Evaluation evaluate(const Problem &problem, const Choice &choice) {
  Evaluation result;
  if (choice.size() != problem.nodes.size()) {
    result.faults.push_back("expected a choice for each of " +
                            std::to_string(problem.nodes.size()) + " nodes, got " +
                            std::to_string(choice.size()));
    return result;
  }
  for (uint32_t node = 0; node < choice.size(); ++node) {
    const std::vector<Option> &options = problem.nodes[node].options;
    if (choice[node] >= options.size()) {
      result.faults.push_back("'" + problem.nodes[node].name + "' has " +
                              std::to_string(options.size()) + " options, and no number " +
                              std::to_string(choice[node]));
      return result;
    }
    const Option &option = options[choice[node]];
    if (!std::isfinite(option.seconds) || !std::isfinite(option.bytes)) {
      result.faults.push_back(nameOf(problem, node, choice[node]) + " is not allowed");
    }
    result.seconds += option.seconds;
    result.bytes += option.bytes;
  }
  for (const Edge &edge : problem.edges) {
    size_t at = choice[edge.a] * problem.nodes[edge.b].options.size() + choice[edge.b];
    double seconds = edge.seconds[at], bytes = edge.bytes.empty() ? 0 : edge.bytes[at];
    if (!std::isfinite(seconds) || !std::isfinite(bytes)) {
      result.faults.push_back(nameOf(problem, edge.a, choice[edge.a]) + " does not go with " +
                              nameOf(problem, edge.b, choice[edge.b]));
    }
    result.seconds += seconds;
    result.bytes += bytes;
  }
  if (result.faults.empty() && result.bytes > problem.bytesLimit) {
    result.faults.push_back("needs " + std::to_string(result.bytes) + " bytes, expected at most " +
                            std::to_string(problem.bytesLimit));
  }
  return result;
}

static bool isLegal(double number) { return number >= 0; } // And so not undefined.

std::vector<std::string> faultsOf(const Problem &problem) {
  std::vector<std::string> faults;
  for (const Node &node : problem.nodes) {
    if (node.options.empty()) {
      faults.push_back("'" + node.name + "' has no options");
    }
    for (const Option &option : node.options) {
      if (!isLegal(option.seconds) || !isLegal(option.bytes)) {
        faults.push_back("'" + node.name + "' as '" + option.name +
                         "': expected numbers of at least 0, got " +
                         std::to_string(option.seconds) + " seconds and " +
                         std::to_string(option.bytes) + " bytes");
      }
    }
  }
  for (size_t i = 0; i < problem.edges.size(); ++i) {
    const Edge &edge = problem.edges[i];
    std::string name = "edge " + std::to_string(i);
    if (edge.a >= problem.nodes.size() || edge.b >= problem.nodes.size() || edge.a == edge.b) {
      faults.push_back(name + " joins " + std::to_string(edge.a) + " and " +
                       std::to_string(edge.b) + ", expected two of " +
                       std::to_string(problem.nodes.size()) + " nodes");
      continue;
    }
    size_t pairs = problem.nodes[edge.a].options.size() * problem.nodes[edge.b].options.size();
    if (edge.seconds.size() != pairs || (!edge.bytes.empty() && edge.bytes.size() != pairs)) {
      faults.push_back(name + " has " + std::to_string(edge.seconds.size()) + " times and " +
                       std::to_string(edge.bytes.size()) + " sizes, expected " +
                       std::to_string(pairs));
    }
    if (!std::all_of(edge.seconds.begin(), edge.seconds.end(), isLegal) ||
        !std::all_of(edge.bytes.begin(), edge.bytes.end(), isLegal)) {
      faults.push_back(name + " has a number that is not 0 or more");
    }
  }
  return faults;
}

} // namespace weft::planner
