//===- Problems.cpp - planning problems as text ---------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A problem that can be read is printed and read again, and if it is small, solved in two ways.
//
//===----------------------------------------------------------------------===//

#include "Fuzz.h"

#include "weft/Planner/ProblemText.h"

#include <algorithm>

using namespace weft::planner;

namespace {

/// Returns true if sums of the numbers are finite and not dominated by rounding.
bool isModerate(double number) {
  return number == 0 || number == kInfinity || (number > 1e-9 && number < 1e15);
}

/// Returns true if the choices are few enough to try them all.
bool isSmall(const Problem &problem) {
  size_t choices = 1;
  bool moderate = isModerate(problem.bytesLimit);
  for (const Node &node : problem.nodes) {
    choices = std::min(choices * node.options.size(), size_t(1) << 20);
    for (const Option &option : node.options) {
      moderate &= isModerate(option.seconds) && isModerate(option.bytes);
    }
  }
  for (const Table &table : problem.tables) {
    moderate &= std::all_of(table.seconds.begin(), table.seconds.end(), isModerate);
  }
  for (const Edge &edge : problem.edges) {
    moderate &= edge.times > 1e-3 && edge.times < 1e3;
  }
  return moderate && choices <= 1000 && problem.edges.size() <= 100;
}

void checkSolution(const Problem &problem) {
  Solution found = solve(problem), best = solveByTrying(problem);
  require(found.found() == best.found() || problem.bytesLimit < kInfinity,
          "what is allowed is found");
  if (!found.found()) {
    return;
  }
  require(evaluate(problem, found.choice).faults.empty(), "what is found is allowed");
  require(found.seconds >= best.seconds * (1 - 1e-9), "nothing is better than the best");
  require(found.lowerBound <= best.seconds * (1 + 1e-9), "the bound is one");
  require(problem.bytesLimit < kInfinity || found.seconds <= best.seconds * (1 + 1e-9),
          "without a limit the best is found");
  std::string text = printSolution(problem, found);
  auto again = parseSolution(problem, text, "solution");
  require(again && printSolution(problem, *again) == text, "a solution is read as it was printed");
}

} // namespace

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view text(reinterpret_cast<const char *>(data), size);
  auto problem = parseProblem(text, "problem");
  for (const weft::desc::Diagnostic &diagnostic : problem.diagnostics()) {
    require(!diagnostic.message.empty(), "what is refused is explained");
  }
  if (!problem) {
    require(!problem.diagnostics().empty(), "either a problem or a reason");
    return 0;
  }
  std::string printed = printProblem(*problem);
  auto again = parseProblem(printed, "printed");
  require(again && printProblem(*again) == printed, "a problem is read as it was printed");
  if (isSmall(*problem)) {
    checkSolution(*problem);
  }
  return 0;
}
