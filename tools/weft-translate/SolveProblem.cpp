//===- SolveProblem.cpp - reads, solves and prints planning problems ------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Translations.h"

#include "weft/Planner/ProblemText.h"

#include "mlir/Tools/mlir-translate/Translation.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

#include <functional>

using namespace mlir;
using namespace weft::planner;

namespace {

/// The most choices that `--solver=trying` tries.
constexpr double kMostChoices = 1e7;

enum class Solver { Search, Exact, Messages, Trying };

LogicalResult fail(const llvm::Twine &message) {
  llvm::errs() << "error: " << message << '\n';
  return failure();
}

/// Returns the solution of a solver; nothing, with an error, if there are too many choices to try.
std::optional<Solution> solve(const Problem &problem, Solver solver) {
  switch (solver) {
  case Solver::Search:
    return solve(problem);
  case Solver::Exact:
    return solve(problem, {.maxWork = SIZE_MAX});
  case Solver::Messages:
    return solve(problem, {.maxWork = 0});
  case Solver::Trying:
    break;
  }
  double choices = 1;
  for (const Node &node : problem.nodes) {
    choices *= double(node.options.size());
  }
  if (choices > kMostChoices) {
    (void)fail("expected at most 10 million choices to try, got " +
               llvm::formatv("{0:E2}", choices).str());
    return std::nullopt;
  }
  return solveByTrying(problem);
}

using Translation = std::function<LogicalResult(const Problem &problem, llvm::raw_ostream &output)>;

/// Of the problem in a file.
void registerFromProblem(llvm::StringRef name, llvm::StringRef description,
                         const Translation &translate) {
  TranslateRegistration registration(
      name, description,
      [translate](const std::shared_ptr<llvm::SourceMgr> &sources, llvm::raw_ostream &output,
                  MLIRContext *) -> LogicalResult {
        const llvm::MemoryBuffer *buffer = sources->getMemoryBuffer(sources->getMainFileID());
        auto problem = parseProblem(buffer->getBuffer(), buffer->getBufferIdentifier().str());
        if (!problem) {
          llvm::errs() << weft::desc::str(problem.diagnostics());
          return failure();
        }
        return translate(*problem, output);
      });
}

LogicalResult evaluateFile(const Problem &problem, const std::string &path,
                           llvm::raw_ostream &output) {
  if (path.empty()) {
    return fail("expected --solution=FILE beside --evaluate-problem");
  }
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer) {
    return fail("'" + path + "': " + buffer.getError().message());
  }
  auto solution = parseSolution(problem, (*buffer)->getBuffer().str(), path);
  if (!solution) {
    llvm::errs() << weft::desc::str(solution.diagnostics());
    return failure();
  }
  Evaluation cost = evaluate(problem, solution->choice);
  output << printEvaluation(cost);
  return success(cost.faults.empty());
}

} // namespace

void weft::registerProblemTranslations() {
  static llvm::cl::opt<Solver> solver(
      "solver", llvm::cl::desc("what --solve-problem solves by"), llvm::cl::init(Solver::Search),
      llvm::cl::values(
          clEnumValN(Solver::Search, "search", "as a compilation does (default)"),
          clEnumValN(Solver::Exact, "exact",
                     "elimination alone, which is exact but for duality gaps under a limit"),
          clEnumValN(Solver::Messages, "messages", "messages alone, which give a bound"),
          clEnumValN(Solver::Trying, "trying", "all choices are tried")));
  static llvm::cl::opt<std::string> solutionPath(
      "solution", llvm::cl::desc("solution that --evaluate-problem evaluates"),
      llvm::cl::value_desc("file"));
  registerFromProblem("print-problem", "planning problem, read and printed",
                      [](const Problem &problem, llvm::raw_ostream &output) {
                        output << printProblem(problem);
                        return success();
                      });
  registerFromProblem("solve-problem", "planning problem to a solution",
                      [](const Problem &problem, llvm::raw_ostream &output) -> LogicalResult {
                        std::optional<Solution> solution = solve(problem, solver);
                        if (!solution) {
                          return failure();
                        }
                        output << printSolution(problem, *solution);
                        return success();
                      });
  registerFromProblem("evaluate-problem", "planning problem to what a solution of it costs",
                      [](const Problem &problem, llvm::raw_ostream &output) {
                        return evaluateFile(problem, solutionPath, output);
                      });
}
