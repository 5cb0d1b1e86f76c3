//===- Solve.h - the best choice of a planning problem --------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Four steps, each exact or with a bound:
//
//   1. Messages along edges give a lower bound, choices near it, and for every option a bound of
//      all choices that have it; options whose bound is above the best choice found so far are
//      struck out (ChainBounds: sequential tree-reweighted message passing, V. Kolmogorov,
//      Convergent tree-reweighted message passing for energy minimization, 2006).
//   2. As soon as few enough are left, nodes are eliminated one after another: all that mentions
//      a node becomes one table of its neighbours, with the best option for each of their
//      choices (R. Dechter, Bucket elimination, 1999), in the order of the least table. That is
//      exact. A layer of a transformer is narrow, so it mostly comes to that.
//   3. Where it does not, the options that messages like best are searched in that way, as many as
//      a short elimination takes, and the best choice is improved node by node. A choice that is
//      better by much strikes out more, and step 1 goes on. In the end it stands with that bound.
//   4. Memory enters as a price: seconds + price * bytes is solved for the price whose bound is
//      greatest (Lagrange), so that the problem stays as narrow as it was. The best choice that
//      fits takes over parts of a faster one that does not, as long as there is memory, and is
//      improved again, now with the limit. The bound is below every choice that fits; between them
//      may be a duality gap. Where the least bytes of all nodes are more than the limit, nothing
//      fits, and of the choices of these bytes the fastest is sought.
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
  /// Sums that an elimination may take; beyond it, messages are passed.
  size_t maxWork = size_t(1) << 24;
  /// Times that messages are passed at one price of memory.
  int maxPasses = 100;
  /// Distance to the bound, as a share of it, that is not worth more messages.
  double gap = 1e-4;
  /// Times that the price of memory is tried.
  int maxPrices = 40;
};

struct Solution {
  /// Empty if nothing was found that fits.
  Choice choice;
  double seconds = kInfinity, bytes = kInfinity;
  /// No choice that fits takes less. Infinity if none can fit.
  double lowerBound = 0;
  /// The most nodes that one table was over, which is the width of the graph as it was eliminated;
  /// 0 where nothing was.
  size_t width = 0;
  /// Options that were never struck out, of all nodes together.
  size_t optionsLeft = 0;

  /// The choice of least memory that was looked at, for a message or where memory is known no
  /// better than roughly; empty if no choice is allowed at all.
  Choice smallest;
  double smallestBytes = kInfinity;

  bool found() const { return !choice.empty(); }
};

/// REQUIRES: `faultsOf(problem)` is empty, and there is at least one node.
Solution solve(const Problem &problem, const SolveLimits &limits = {});

/// Tries all choices: for tests, and for problems of some millions of them.
Solution solveByTrying(const Problem &problem);

} // namespace weft::planner

#endif // WEFT_PLANNER_SOLVE_H
