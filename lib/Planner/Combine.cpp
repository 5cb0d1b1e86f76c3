//===- Combine.cpp - the best parts of two choices ------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SolveParts.h"

#include <algorithm>
#include <numeric>

namespace weft::planner {

namespace {

/// A part: connected nodes whose options differ between the two choices. Its savings do not depend
/// on other parts.
struct Part {
  std::vector<uint32_t> nodes;
  double seconds = 0, bytes = 0; // Of the other choice less those of this one.
};

class Combination {
public:
  Combination(const Problem &problem, const Choice &other, Choice &choice)
      : problem(problem), other(other), choice(choice), parent(choice.size()) {}

  void run() {
    std::vector<Part> parts = findParts();
    std::erase_if(parts, [](const Part &part) { return !(part.seconds < 0); });
    // First parts that save most for their bytes.
    std::sort(parts.begin(), parts.end(), [](const Part &a, const Part &b) {
      double savedByA = a.seconds * std::max(b.bytes, 0.0);
      double savedByB = b.seconds * std::max(a.bytes, 0.0);
      return savedByA != savedByB ? savedByA < savedByB : a.nodes < b.nodes;
    });
    double bytes = 0;
    for (uint32_t node = 0; node < choice.size(); ++node) {
      bytes += problem.nodes[node].options[choice[node]].bytes;
    }
    for (const Part &part : parts) {
      if (bytes + part.bytes <= problem.bytesLimit) {
        bytes += part.bytes;
        for (uint32_t node : part.nodes) {
          choice[node] = other[node];
        }
      }
    }
  }

private:
  bool differs(uint32_t node) const { return choice[node] != other[node]; }

  uint32_t rootOf(uint32_t node) {
    while (parent[node] != node) {
      node = parent[node] = parent[parent[node]];
    }
    return node;
  }

  std::vector<Part> findParts() {
    std::iota(parent.begin(), parent.end(), 0);
    for (const Edge &edge : problem.edges) {
      if (differs(edge.a) && differs(edge.b)) {
        parent[rootOf(edge.a)] = rootOf(edge.b);
      }
    }
    std::vector<Part> parts(choice.size());
    for (uint32_t node = 0; node < choice.size(); ++node) {
      if (differs(node)) {
        Part &part = parts[rootOf(node)];
        const std::vector<Option> &options = problem.nodes[node].options;
        part.nodes.push_back(node);
        part.seconds += options[other[node]].seconds - options[choice[node]].seconds;
        part.bytes += options[other[node]].bytes - options[choice[node]].bytes;
      }
    }
    for (const Edge &edge : problem.edges) {
      if (differs(edge.a) || differs(edge.b)) {
        uint32_t node = differs(edge.a) ? edge.a : edge.b;
        parts[rootOf(node)].seconds += problem.seconds(edge, other[edge.a], other[edge.b]) -
                                       problem.seconds(edge, choice[edge.a], choice[edge.b]);
      }
    }
    return parts;
  }

  const Problem &problem;
  const Choice &other;
  Choice &choice;
  std::vector<uint32_t> parent;
};

} // namespace

void combine(const Problem &problem, const Choice &other, Choice &choice) {
  Combination(problem, other, choice).run();
}

} // namespace weft::planner
