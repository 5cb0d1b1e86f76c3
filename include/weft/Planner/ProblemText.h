//===- ProblemText.h - planning problems and solutions as text ------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A problem that can be written by hand, and in which that of a model can be read:
//
//   # Two ops that share a value.
//   limit 8e9
//   node "matmul"
//     option "whole" 3e-3 6e9
//     option "cut" 1e-3 3e9
//   node "sum"
//     option "whole" 2e-3 0
//   table "tensor<8xf32>" shortest
//     row 0 1e-4
//     row inf 0
//   edge "matmul" "sum" "tensor<8xf32>" times 2
//     rows 0 1
//     columns 0
//
// An option has seconds and bytes, `inf` forbids, and no `limit` is none. An edge names two nodes
// and a table that stand above it, by names that they alone have or as #0, #1 and so on. Without
// `rows` the options of the first node have the rows of the table in their order, without `columns`
// those of the second its columns; without `times` it is paid once. In a name, \" is a quote, \\ a
// backslash and \n the end of a line. What follows # and a space is a comment.
//
// A solution says what was found; `choice` and `smallest` are missing where there is none:
//
//   seconds 5e-3
//   bytes 3e9
//   bound 5e-3
//   width 1
//   left 3
//   choice
//     take "matmul" "cut"
//     take "sum" "whole"
//   smallest 3e9
//     take "matmul" "cut"
//     take "sum" "whole"
//
// What is printed is read again as it was, to the last bit of every number. Functions keep no
// state; any number of threads may call them.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PLANNER_PROBLEMTEXT_H
#define WEFT_PLANNER_PROBLEMTEXT_H

#include "weft/Description/Diagnostic.h"
#include "weft/Planner/Solve.h"

#include <string_view>

namespace weft::planner {

/// REQUIRES: `faultsOf(problem)` is empty.
std::string printProblem(const Problem &problem);

/// Fails with all that is wrong with lines of `text`, or else, in the words of `faultsOf`, with the
/// problem; `file` is what errors call it. A problem has at least one node.
desc::Result<Problem> parseProblem(std::string_view text, const std::string &file);

/// REQUIRES: `solution` is one of `problem`.
std::string printSolution(const Problem &problem, const Solution &solution);

/// Fails if a number is missing, or a choice has not one option for each of `problem`'s nodes.
/// Whether the choice costs what is said is for `evaluate` to tell.
desc::Result<Solution> parseSolution(const Problem &problem, std::string_view text,
                                     const std::string &file);

/// Seconds and bytes as of a solution, and a line for each fault.
std::string printEvaluation(const Evaluation &evaluation);

} // namespace weft::planner

#endif // WEFT_PLANNER_PROBLEMTEXT_H
