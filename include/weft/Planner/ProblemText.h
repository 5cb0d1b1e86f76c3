//===- ProblemText.h - planning problems and solutions as text ------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The text format of problems, for tests and for reading the problem of a model:
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
// An option has seconds and bytes. `inf` forbids an option or a pair of options. Without `limit`,
// memory is unlimited. An edge names two nodes and a table above it, by unique names or by numbers
// as #0, #1 and so on. Without `rows`, option i of the first node has row i of the table, without
// `columns`, option i of the second node has column i; without `times`, the edge counts once. In a
// name, \" is a quote, \\ a backslash and \n the end of a line. A comment begins with # and a
// space.
//
// A solution lacks `choice` or `smallest` if none was found:
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
// Parsing a printed problem or solution gives the same one, to the last bit of every number.
// Functions keep no state; any number of threads may call them.
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

/// Fails with all errors in lines of `text` or, if there are none, with those of `faultsOf`, or for
/// a problem without nodes. Errors name `file`.
desc::Result<Problem> parseProblem(std::string_view text, const std::string &file);

/// REQUIRES: `solution` is one of `problem`.
std::string printSolution(const Problem &problem, const Solution &solution);

/// Fails if a number is missing, or if a choice lacks an option of a node of `problem`. Does not
/// check the costs of the choice: see `evaluate`.
desc::Result<Solution> parseSolution(const Problem &problem, std::string_view text,
                                     const std::string &file);

/// Returns the seconds and bytes, in the format of a solution, and a line for each fault.
std::string printEvaluation(const Evaluation &evaluation);

} // namespace weft::planner

#endif // WEFT_PLANNER_PROBLEMTEXT_H
