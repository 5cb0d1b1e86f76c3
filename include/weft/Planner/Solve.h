//===- Solve.h - the best choice of a planning problem --------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The solver takes four steps, each exact or with a bound:
//
//   1. Messages along edges give a lower bound, choices near it, and for every option a lower bound
//      of all choices that have the option. Options whose bound is above the best choice found so
//      far are struck out (ChainBounds: sequential tree-reweighted message passing, V. Kolmogorov,
//      Convergent tree-reweighted message passing for energy minimization, 2006).
//   2. As soon as few enough options are left, nodes are eliminated one after another: all tables
//      with a node become one table of its neighbours, with the node's best option for each of
//      their choices (R. Dechter, Bucket elimination, 1999). The node with the smallest such table
//      goes first. Elimination is exact. A layer of a transformer has a narrow graph, so that most
//      problems end here.
//   3. Otherwise elimination searches only the options of each node that the messages rank best, as
//      many as a short elimination can take, and the best choice is improved node by node. A much
//      better choice strikes out more options, and step 1 goes on. If no elimination becomes
//      possible, the result is the best choice together with the lower bound.
//   4. Memory has a price: the solver minimizes seconds + price * bytes, for the price with the
//      greatest bound (Lagrange), so that the graph stays as narrow as without memory. The best
//      choice that fits takes over parts of a faster one that does not, as long as it fits, and is
//      improved again within the limit. The bound is below every choice that fits, perhaps by a
//      duality gap. If the least bytes of all nodes exceed the limit, nothing fits, and the solver
//      seeks the fastest of the choices with the least bytes.
//
// The same problem has the same answer on every machine with IEEE arithmetic. Functions
// keep no state; any number of threads may call them.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PLANNER_SOLVE_H
#define WEFT_PLANNER_SOLVE_H

#include "weft/Planner/Problem.h"

namespace weft::planner {

struct SolveLimits {
  /// Most sums that an elimination may take; messages are passed until that suffices.
  size_t maxWork = size_t(1) << 24;
  /// Most passes of messages at one price of memory.
  int maxPasses = 100;
  /// Distance of the best choice from the bound, relative to the bound, below which passes end.
  double gap = 1e-4;
  /// Most prices of memory to try.
  int maxPrices = 40;
};

struct Solution {
  /// The best choice found that fits; empty if none was found.
  Choice choice;
  double seconds = kInfinity, bytes = kInfinity;
  /// Lower bound on the seconds of every choice that fits. Infinity if none can fit.
  double lowerBound = 0;
  /// The most nodes of one table in an elimination, which is the width of the graph in that order;
  /// 0 if no node was eliminated.
  size_t width = 0;
  /// Options that were not struck out, of all nodes together, at the price of memory where most
  /// were left.
  size_t optionsLeft = 0;

  /// The choice of least memory that the solver met, for a message, or for callers whose limit is
  /// only an estimate; empty if no choice is allowed at all.
  Choice smallest;
  double smallestBytes = kInfinity;

  bool found() const { return !choice.empty(); }
};

/// Returns the best choice found, and a lower bound.
/// REQUIRES: `faultsOf(problem)` is empty, and there is at least one node.
Solution solve(const Problem &problem, const SolveLimits &limits = {});

/// Tries all choices: for tests, and for problems of some millions of them.
Solution solveByTrying(const Problem &problem);

} // namespace weft::planner

#endif // WEFT_PLANNER_SOLVE_H
