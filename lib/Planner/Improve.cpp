//===- Improve.cpp - small changes for the better -------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SolveParts.h"

#include <algorithm>

namespace weft::planner {

namespace {

class Improvement {
public:
  Improvement(const Energies &energies, double limit, Choice &choice)
      : energies(energies), problem(energies.problem), choice(choice),
        isSettled(choice.size(), false), areSettled(problem.edges.size(), false) {
    for (uint32_t node = 0; node < choice.size(); ++node) {
      held += bytesOf(node, choice[node]);
    }
    allowed = std::max(limit, held);
  }

  void run() {
    for (bool changed = true; changed;) {
      changed = false;
      for (uint32_t node = 0; node < choice.size(); ++node) {
        changed |= !isSettled[node] && moveNode(node);
        isSettled[node] = true;
      }
      for (uint32_t number = 0; number < problem.edges.size(); ++number) {
        const Edge &edge = problem.edges[number];
        // Ends of an edge without cost rarely need to move together.
        if (!areSettled[number] && problem.seconds(edge, choice[edge.a], choice[edge.b]) > 0) {
          changed |= moveEnds(edge);
          areSettled[number] = true;
        }
      }
    }
  }

private:
  double bytesOf(uint32_t node, uint32_t option) const {
    return problem.nodes[node].options[option].bytes;
  }

  /// Nodes and edges without an improvement stay settled until a neighbour changes or memory
  /// becomes free.
  void take(uint32_t node, uint32_t option) {
    double more = bytesOf(node, option) - bytesOf(node, choice[node]);
    choice[node] = option;
    held += more;
    if (more < 0 && allowed < kInfinity) {
      isSettled.assign(isSettled.size(), false);
      areSettled.assign(areSettled.size(), false);
      return;
    }
    unsettle(node);
    for (uint32_t neighbor : energies.graph.neighborsOf[node]) {
      unsettle(neighbor);
    }
  }

  void unsettle(uint32_t node) {
    isSettled[node] = false;
    for (uint32_t edge : energies.graph.edgesOf[node]) {
      areSettled[edge] = false;
    }
  }

  /// Ignores gains that may be rounding errors, as the search would not end.
  static bool isLess(double a, double b) { return a < b * (1 - 1e-12); }

  bool moveNode(uint32_t node) {
    std::vector<double> sums = energies.around(node, choice);
    double others = held - bytesOf(node, choice[node]);
    uint32_t best = choice[node];
    for (uint32_t option = 0; option < sums.size(); ++option) {
      if (isLess(sums[option], sums[best]) && others + bytesOf(node, option) <= allowed) {
        best = option;
      }
    }
    if (best == choice[node]) {
      return false;
    }
    take(node, best);
    return true;
  }

  bool moveEnds(const Edge &edge) {
    // Neither sum includes this edge. Other edges between the two nodes would be in both sums.
    std::vector<double> a = energies.around(edge.a, choice, &edge);
    std::vector<double> b = energies.around(edge.b, choice, &edge);
    for (uint32_t number : energies.graph.edgesOf[edge.a]) {
      const Edge &other = problem.edges[number];
      if (&other != &edge && (other.a == edge.b || other.b == edge.b)) {
        return false;
      }
    }
    double others = held - bytesOf(edge.a, choice[edge.a]) - bytesOf(edge.b, choice[edge.b]);
    uint32_t bestA = choice[edge.a], bestB = choice[edge.b];
    double best = a[bestA] + b[bestB] + problem.seconds(edge, bestA, bestB);
    for (uint32_t optionA = 0; optionA < a.size(); ++optionA) {
      for (uint32_t optionB = 0; a[optionA] < best && optionB < b.size(); ++optionB) {
        double sum = a[optionA] + b[optionB] + problem.seconds(edge, optionA, optionB);
        double bytes = others + bytesOf(edge.a, optionA) + bytesOf(edge.b, optionB);
        if (isLess(sum, best) && bytes <= allowed) {
          best = sum;
          bestA = optionA;
          bestB = optionB;
        }
      }
    }
    if (bestA == choice[edge.a] && bestB == choice[edge.b]) {
      return false;
    }
    take(edge.a, bestA);
    take(edge.b, bestB);
    return true;
  }

  const Energies &energies;
  const Problem &problem;
  Choice &choice;
  double held = 0, allowed = 0;
  /// Nodes and edges that need no visit.
  std::vector<bool> isSettled, areSettled;
};

} // namespace

void improve(const Energies &energies, double limit, Choice &choice) {
  Improvement(energies, limit, choice).run();
}

} // namespace weft::planner
