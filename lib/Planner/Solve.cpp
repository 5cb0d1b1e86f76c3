//===- Solve.cpp - the best choice, within a limit of memory --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Planner/Solve.h"

#include "SolveParts.h"

#include <algorithm>
#include <cmath>

namespace weft::planner {

namespace {

class Solver {
public:
  Solver(const Problem &problem, const SolveLimits &limits)
      : problem(problem), limits(limits), seconds(weigh(problem, 1, 0)),
        bytes(weigh(problem, 0, 1)) {}

  Solution run() {
    Point fast = at(1, 0);
    solution.lowerBound = fast.bound;
    if (std::isfinite(fast.bytes) && fast.bytes > problem.bytesLimit) {
      withinLimit(fast);
    }
    return std::move(solution);
  }

private:
  /// What one price of memory leads to.
  struct Point {
    Choice choice;
    double seconds, bytes;
    /// Of the weighted sum.
    double bound;
  };

  Point at(double secondsWeight, double bytesWeight) {
    Energies energies = weigh(problem, secondsWeight, bytesWeight);
    std::vector<std::vector<uint32_t>> kept = strikeDeadEnds(energies);
    Energies less = restrictTo(energies, kept);
    Elimination found = eliminate(less, limits.maxTable);
    for (uint32_t node = 0; node < kept.size(); ++node) {
      found.choice[node] = kept[node][found.choice[node]];
    }
    if (solution.optionsLeft == 0) {
      for (const std::vector<uint32_t> &options : kept) {
        solution.optionsLeft += options.size();
      }
    }
    solution.width = std::max(solution.width, found.width);
    improve(energies, bytes, kInfinity, found.choice);
    Point point{found.choice, seconds.of(found.choice), bytes.of(found.choice), found.bound};
    keep(point.choice);
    return point;
  }

  void keep(const Choice &choice) {
    Evaluation cost = evaluate(problem, choice);
    if (cost.faults.empty() && cost.seconds < solution.seconds) {
      solution.choice = choice;
      solution.seconds = cost.seconds;
      solution.bytes = cost.bytes;
    }
  }

  /// Along the lower hull of (bytes, seconds): the line through a point that is too large and one
  /// that fits gives the next price, until nothing lies below it.
  void withinLimit(Point large) {
    Point small = at(0, 1);
    if (small.bound > problem.bytesLimit) {
      solution.lowerBound = kInfinity;
      return;
    }
    for (int i = 0; i < limits.maxPrices && small.bytes < large.bytes; ++i) {
      double price = (small.seconds - large.seconds) / (large.bytes - small.bytes);
      if (!(price > 0) || !std::isfinite(price)) {
        break;
      }
      Point next = at(1, price);
      solution.lowerBound = std::max(solution.lowerBound, next.bound - price * problem.bytesLimit);
      double line = large.seconds + price * large.bytes;
      bool isBelow = next.seconds + price * next.bytes < line * (1 - 1e-9);
      (next.bytes > problem.bytesLimit ? large : small) = next;
      if (!isBelow) {
        break;
      }
    }
    for (Choice choice : {small.choice, solution.choice}) {
      if (!choice.empty()) {
        improve(seconds, bytes, problem.bytesLimit, choice);
        keep(choice);
      }
    }
  }

  const Problem &problem;
  const SolveLimits limits;
  const Energies seconds, bytes;
  Solution solution;
};

} // namespace

Solution solve(const Problem &problem, const SolveLimits &limits) {
  return Solver(problem, limits).run();
}

Solution solveByTrying(const Problem &problem) {
  Solution solution;
  Choice choice(problem.nodes.size(), 0);
  for (size_t at = 0; at < choice.size();) {
    Evaluation cost = evaluate(problem, choice);
    if (cost.faults.empty() && cost.seconds < solution.seconds) {
      solution.choice = choice;
      solution.seconds = cost.seconds;
      solution.bytes = cost.bytes;
    }
    for (at = 0; at < choice.size() && ++choice[at] == problem.nodes[at].options.size(); ++at) {
      choice[at] = 0;
    }
  }
  solution.lowerBound = solution.seconds;
  return solution;
}

} // namespace weft::planner
