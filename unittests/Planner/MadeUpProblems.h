//===- MadeUpProblems.h - planning problems by chance ----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_UNITTESTS_PLANNER_MADEUPPROBLEMS_H
#define WEFT_UNITTESTS_PLANNER_MADEUPPROBLEMS_H

#include "weft/Planner/Problem.h"

namespace weft::planner {

/// The same problem for the same `seed`, of nodes with up to `options` options, each two joined
/// with the probability `density`. Numbers are small and whole, so that there are many `ties`, or
/// fractions.
Problem makeProblem(uint32_t seed, uint32_t nodes, uint32_t options, double density, bool ties);

} // namespace weft::planner

#endif // WEFT_UNITTESTS_PLANNER_MADEUPPROBLEMS_H
