//===- Energies.cpp - one number for each option --------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SolveParts.h"

#include <algorithm>

namespace weft::planner {

Graph::Graph(const Problem &problem)
    : edgesOf(problem.nodes.size()), neighborsOf(problem.nodes.size()) {
  for (uint32_t number = 0; number < problem.edges.size(); ++number) {
    const Edge &edge = problem.edges[number];
    edgesOf[edge.a].push_back(number);
    edgesOf[edge.b].push_back(number);
    neighborsOf[edge.a].push_back(edge.b);
    neighborsOf[edge.b].push_back(edge.a);
  }
  for (std::vector<uint32_t> &around : neighborsOf) {
    std::sort(around.begin(), around.end());
    around.erase(std::unique(around.begin(), around.end()), around.end());
  }
}

Energies::Energies(const Problem &problem, const Graph &graph, double price)
    : problem(problem), graph(graph) {
  for (const Node &node : problem.nodes) {
    std::vector<double> &numbers = nodes.emplace_back();
    for (const Option &option : node.options) {
      // Forbidden options stay forbidden at any price, also at 0.
      bool forbidden = option.seconds == kInfinity || option.bytes == kInfinity;
      numbers.push_back(forbidden ? kInfinity : option.seconds + price * option.bytes);
    }
  }
}

double Energies::of(const Choice &choice) const {
  double sum = 0;
  for (uint32_t node = 0; node < nodes.size(); ++node) {
    sum += nodes[node][choice[node]];
  }
  for (const Edge &edge : problem.edges) {
    sum += problem.seconds(edge, choice[edge.a], choice[edge.b]);
  }
  return sum;
}

std::vector<double> Energies::around(uint32_t node, const Choice &choice,
                                     const Edge *without) const {
  std::vector<double> sums = nodes[node];
  for (uint32_t number : graph.edgesOf[node]) {
    const Edge &edge = problem.edges[number];
    if (&edge == without) {
      continue;
    }
    for (uint32_t option = 0; option < sums.size(); ++option) {
      sums[option] += edge.a == node ? problem.seconds(edge, option, choice[edge.b])
                                     : problem.seconds(edge, choice[edge.a], option);
    }
  }
  return sums;
}

size_t Energies::optionsLeft() const {
  size_t count = 0;
  for (const std::vector<double> &node : nodes) {
    count += size_t(
        std::count_if(node.begin(), node.end(), [](double energy) { return energy < kInfinity; }));
  }
  return count;
}

} // namespace weft::planner
