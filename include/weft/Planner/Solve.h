//===- Solve.h - the best choice of a planning problem --------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Three steps, each exact or with a bound:
//
//   1. An option that another one of its node beats whatever the neighbours choose is struck
//      out (dead-end elimination: R. F. Goldstein, Efficient rotamer elimination applied to
//      protein side-chains and related spin glasses, 1994).
//   2. Nodes are eliminated one after another: all that mentions a node becomes one table of
//      its neighbours, with the best option for each of their choices (R. Dechter, Bucket
//      elimination, 1999). The order is by the least table. A layer of a transformer is
//      narrow, so this is exact. Where a table would pass `maxTable`, its parts are minimized
//      apart (mini-buckets: R. Dechter, I. Rish, 2003): the sum of minima is at most the
//      minimum of the sum, which makes the result a lower bound, and going back through the
//      tables gives a choice near it, that is then improved node by node.
//   3. Memory enters as a price: seconds + lambda * bytes is solved for the lambda whose
//      bound is greatest (Lagrange), so that the problem stays as narrow as it was. The best
//      choice that fits is improved again, now with the limit. The bound is below every choice that
//      fits; between them may be a duality gap.
//
// The same problem has the same answer, on every machine with IEEE arithmetic. Functions
// keep no state; any number of threads may call them.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PLANNER_SOLVE_H
#define WEFT_PLANNER_SOLVE_H

#include "weft/Planner/Problem.h"

namespace weft::planner {

struct SolveLimits {
  /// Numbers in one table; beyond it tables are split, and the answer is a choice and a bound.
  size_t maxTable = size_t(1) << 22;
  /// Times that the price of memory is tried.
  int maxPrices = 40;
};

struct Solution {
  /// Empty if nothing was found that fits.
  Choice choice;
  double seconds = kInfinity, bytes = kInfinity;
  /// No choice that fits takes less. Infinity if none can fit.
  double lowerBound = 0;
  /// The most nodes that one table was over, which is the width of the graph as it was eliminated.
  size_t width = 0;
  /// Options that were left after the first step, of all nodes together.
  size_t optionsLeft = 0;

  bool found() const { return !choice.empty(); }
};

/// REQUIRES: `faultsOf(problem)` is empty, and there is at least one node.
Solution solve(const Problem &problem, const SolveLimits &limits = {});

/// Tries all choices: for tests, and for problems of some millions of them.
Solution solveByTrying(const Problem &problem);

} // namespace weft::planner

#endif // WEFT_PLANNER_SOLVE_H
