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

/// Returns a random problem, the same for the same `seed`, of nodes with up to `options` options;
/// two nodes share an edge with the probability `density`. Numbers are small and whole if `ties`,
/// so that many solutions cost the same, else fractions.
Problem makeProblem(uint32_t seed, uint32_t nodes, uint32_t options, double density, bool ties);

} // namespace weft::planner

#endif // WEFT_UNITTESTS_PLANNER_MADEUPPROBLEMS_H
