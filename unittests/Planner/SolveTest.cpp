//===- SolveTest.cpp - the best choice of a planning problem --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MadeUpProblems.h"

#include "weft/Planner/Solve.h"

#include <gtest/gtest.h>

#include <random>

using namespace weft::planner;

namespace {

void expectConsistent(const Problem &problem, const Solution &solution) {
  if (!solution.found()) {
    return;
  }
  Evaluation cost = evaluate(problem, solution.choice);
  EXPECT_TRUE(cost.faults.empty());
  EXPECT_EQ(cost.seconds, solution.seconds);
  EXPECT_EQ(cost.bytes, solution.bytes);
  EXPECT_LE(solution.lowerBound, solution.seconds * (1 + 1e-9));
}

TEST(Solve, EqualsTryingAllChoices) {
  int solved = 0;
  for (uint32_t seed = 0; seed < 400; ++seed) {
    Problem problem = makeProblem(seed, 2 + seed % 6, 4, seed % 3 == 0 ? 0.5 : 0.2, seed % 2);
    ASSERT_TRUE(faultsOf(problem).empty());
    Solution best = solveByTrying(problem), found = solve(problem);
    expectConsistent(problem, found);
    ASSERT_EQ(found.found(), best.found()) << "seed " << seed;
    if (best.found()) {
      ASSERT_NEAR(found.seconds, best.seconds, 1e-9) << "seed " << seed;
      ASSERT_NEAR(found.lowerBound, best.seconds, 1e-9) << "seed " << seed;
      ++solved;
    }
  }
  EXPECT_GT(solved, 200);
}

TEST(Solve, BoundsWhatFitsIntoMemory) {
  int tight = 0, equal = 0;
  for (uint32_t seed = 0; seed < 800; ++seed) {
    Problem problem = makeProblem(seed + 1000, 3 + seed % 5, 4, 0.3, seed % 2);
    Solution free = solve(problem);
    if (!free.found()) {
      continue;
    }
    problem.bytesLimit = free.bytes * (0.4 + 0.1 * (seed % 6));
    Solution best = solveByTrying(problem), found = solve(problem);
    expectConsistent(problem, found);
    ASSERT_EQ(found.found(), best.found()) << "seed " << seed;
    if (!best.found()) {
      // Either nothing fits by the bound, or only what the bound cannot tell does not.
      continue;
    }
    ASSERT_LE(found.lowerBound, best.seconds * (1 + 1e-9)) << "seed " << seed;
    ASSERT_GE(found.seconds, best.seconds * (1 - 1e-9)) << "seed " << seed;
    ++tight;
    equal += found.seconds <= best.seconds * (1 + 1e-9);
  }
  EXPECT_GT(tight, 200);
  // The rest are duality gaps that small changes did not close.
  EXPECT_GE(equal, tight * 9 / 10) << tight;
}

TEST(Solve, SaysThatNothingFits) {
  Problem problem = makeProblem(7, 4, 3, 0.3, false);
  for (Node &node : problem.nodes) {
    for (Option &option : node.options) {
      option.seconds = 1;
      option.bytes = 10;
    }
  }
  problem.edges.clear();
  problem.bytesLimit = 39;
  Solution solution = solve(problem);
  EXPECT_FALSE(solution.found());
  EXPECT_EQ(solution.lowerBound, kInfinity);
  EXPECT_EQ(solution.smallest.size(), 4u);
  EXPECT_EQ(solution.smallestBytes, 40);
  problem.bytesLimit = 40;
  EXPECT_TRUE(solve(problem).found());
}

TEST(Solve, OfWhatDoesNotFitTheFastestIsTheSmallest) {
  // Both options of the first node need as much; the second node's fast one needs more.
  Problem problem;
  problem.nodes = {{"a", {{"slow", 5, 10}, {"fast", 1, 10}}},
                   {"b", {{"large", 1, 20}, {"small", 9, 10}}}};
  problem.bytesLimit = 15;
  Solution solution = solve(problem);
  EXPECT_FALSE(solution.found());
  EXPECT_EQ(solution.lowerBound, kInfinity);
  EXPECT_EQ(solution.smallest, (Choice{1, 1}));
  EXPECT_EQ(solution.smallestBytes, 20);
}

/// Nodes that are fast with `bytes[node]`, and slow with none.
Problem makeKnapsack(const std::vector<double> &saved, const std::vector<double> &bytes) {
  Problem problem;
  for (size_t node = 0; node < saved.size(); ++node) {
    problem.nodes.push_back({"n", {{"slow", saved[node], 0}, {"fast", 0, bytes[node]}}});
  }
  return problem;
}

TEST(Solve, UsesUpTheMemoryThatPricesLeave) {
  // At each price equal nodes are fast together, or slow. Two of them fit.
  Problem problem = makeKnapsack({4, 4, 4}, {10, 10, 10});
  problem.bytesLimit = 25;
  EXPECT_EQ(solve(problem).seconds, 4);
  // Two pairs that are only fast together, of which one fits.
  problem = makeKnapsack({4, 4, 4, 4}, {10, 10, 10, 10});
  problem.tables = {{"differ", 2, 2, {0, 9, 9, 0}}};
  problem.edges = {{0, 1, 0, {0, 1}, {0, 1}, 1}, {2, 3, 0, {0, 1}, {0, 1}, 1}};
  problem.bytesLimit = 25;
  EXPECT_EQ(solve(problem).seconds, 8);
}

TEST(Solve, MessagesAloneBound) {
  int equal = 0, tight = 0, all = 0;
  for (uint32_t seed = 0; seed < 600; ++seed) {
    Problem problem =
        makeProblem(seed + 5000, 4 + seed % 8, 4, seed % 2 ? 0.3 : 0.15, seed % 3 == 0);
    Solution best = solve(problem), found = solve(problem, {.maxWork = 8});
    expectConsistent(problem, found);
    ASSERT_LE(found.lowerBound, best.seconds * (1 + 1e-9)) << "seed " << seed;
    ASSERT_GE(found.seconds, best.seconds * (1 - 1e-9)) << "seed " << seed;
    if (best.found()) {
      equal += found.seconds <= best.seconds * (1 + 1e-9);
      tight += found.lowerBound >= best.seconds * (1 - 1e-3);
      ++all;
    }
  }
  EXPECT_GT(all, 200);
  EXPECT_GT(equal, all * 9 / 10) << all;
  EXPECT_GT(tight, all / 2) << all;
}

/// Each two nodes pay for equal options, for which messages give weak bounds.
Problem makeQuarrel(uint32_t seed, uint32_t nodes) {
  std::mt19937 random(seed);
  auto number = [&](double scale) { return double(random()) / 4294967296.0 * scale; };
  Problem problem;
  for (uint32_t node = 0; node < nodes; ++node) {
    problem.nodes.push_back({"n", {{"a", number(1), 0}, {"b", number(1), 0}, {"c", number(1), 0}}});
    for (uint32_t other = 0; other < node; ++other) {
      double alike = number(5);
      problem.edges.push_back(
          {other, node, uint32_t(problem.tables.size()), {0, 1, 2}, {0, 1, 2}, 1});
      problem.tables.push_back({"t", 3, 3, {alike, 0, 0, 0, alike, 0, 0, 0, alike}});
    }
  }
  return problem;
}

TEST(Solve, SearchesAroundMessages) {
  int equal = 0;
  for (uint32_t seed = 0; seed < 100; ++seed) {
    Problem problem = makeQuarrel(seed, 7);
    // Not enough for an elimination of all options.
    Solution best = solveByTrying(problem), found = solve(problem, {.maxWork = 1024});
    expectConsistent(problem, found);
    ASSERT_GE(found.seconds, best.seconds * (1 - 1e-9)) << "seed " << seed;
    ASSERT_LE(found.lowerBound, best.seconds * (1 + 1e-9)) << "seed " << seed;
    equal += found.seconds <= best.seconds * (1 + 1e-9);
  }
  EXPECT_GE(equal, 70);
}

/// A chain of nodes; neighbours that differ pay.
Problem makeChain(uint32_t nodes) {
  Problem problem;
  problem.tables = {{"differ", 8, 8, {}}};
  for (uint32_t pair = 0; pair < 64; ++pair) {
    problem.tables[0].seconds.append(pair / 8 == pair % 8 ? 0 : 3);
  }
  const std::vector<uint32_t> all = {0, 1, 2, 3, 4, 5, 6, 7};
  for (uint32_t node = 0; node < nodes; ++node) {
    problem.nodes.push_back({"n", {}});
    for (uint32_t option = 0; option < 8; ++option) {
      problem.nodes.back().options.push_back({"o", double((node * 7 + option * 5) % 11), 1});
    }
    if (node > 0) {
      problem.edges.push_back({node - 1, node, 0, all, all, 1});
    }
  }
  return problem;
}

TEST(Solve, ALongChainIsNarrow) {
  Problem problem = makeChain(1000);
  Solution solution = solve(problem);
  EXPECT_GE(solution.width, 1u);
  EXPECT_LE(solution.width, 2u); // A node in the middle has two neighbours.
  EXPECT_NEAR(solution.lowerBound, solution.seconds, 1e-9);
  // On a chain, messages are exact too.
  EXPECT_NEAR(solve(problem, {.maxWork = 8}).seconds, solution.seconds, 1e-9);
  EXPECT_NEAR(solve(problem, {.maxWork = 8}).lowerBound, solution.seconds, 1e-6);
}

TEST(Solve, TheLeastOfEachNodeNeedNotGoTogether) {
  Problem problem;
  problem.nodes = {{"x", {{"small", 1, 1}, {"large", 1, 3}}},
                   {"y", {{"small", 1, 1}, {"large", 1, 3}}}};
  problem.tables = {{"t", 2, 2, {kInfinity, 0, 0, 0}}};
  problem.edges = {{0, 1, 0, {0, 1}, {0, 1}, 1}};
  problem.bytesLimit = 1.5;
  for (size_t work : {size_t(1), SolveLimits().maxWork}) {
    Solution solution = solve(problem, {.maxWork = work});
    EXPECT_FALSE(solution.found());
    ASSERT_EQ(solution.smallest.size(), 2u) << work;
    EXPECT_EQ(solution.smallestBytes, 4);
  }
}

TEST(Solve, MovesOnFromPairsThatAreForbidden) {
  int found = 0, possible = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    Problem problem = makeProblem(seed, 16, 6, 0.1, false);
    problem.bytesLimit = seed % 2 ? 60 : kInfinity;
    Solution best = solve(problem);
    // Hardly a message, and no elimination.
    Solution solution = solve(problem, {.maxWork = 1, .maxPasses = 1});
    expectConsistent(problem, solution);
    possible += best.found();
    found += solution.found();
    EXPECT_LE(solution.lowerBound, best.seconds * (1 + 1e-9)) << "seed " << seed;
  }
  EXPECT_GT(possible, 100);
  EXPECT_GE(found, possible - 2); // Without such moves five are missed.
}

TEST(Solve, TheSameProblemHasTheSameAnswer) {
  Problem problem = makeProblem(3, 12, 5, 0.25, true);
  Choice first = solve(problem).choice;
  for (int repeat = 0; repeat < 5; ++repeat) {
    EXPECT_EQ(solve(problem).choice, first);
  }
}

TEST(Evaluate, NamesWhatIsWrong) {
  Problem problem;
  problem.nodes = {{"x", {{"whole", 1, 5}, {"cut", kInfinity, 1}}}, {"y", {{"whole", 2, 5}}}};
  problem.tables = {{"t", 2, 1, {kInfinity, 0}}};
  problem.edges = {{0, 1, 0, {0, 1}, {0}, 1}};
  problem.bytesLimit = 3;
  using Faults = std::vector<std::string>;
  EXPECT_EQ(evaluate(problem, {0}).faults, Faults{"expected a choice for each of 2 nodes, got 1"});
  EXPECT_EQ(evaluate(problem, {2, 0}).faults, Faults{"'x' has 2 options, and no number 2"});
  EXPECT_EQ(evaluate(problem, {0, 0}).faults,
            Faults{"'x' as 'whole' does not go with 'y' as 'whole'"});
  EXPECT_EQ(evaluate(problem, {1, 0}).faults, Faults{"'x' as 'cut' is not allowed"});
  problem.tables[0].seconds = {0, 0};
  EXPECT_EQ(evaluate(problem, {0, 0}).faults,
            Faults{"needs 10.000000 bytes, expected at most 3.000000"});
}

TEST(Problem, NamesWhatIsWrong) {
  Problem problem;
  problem.nodes = {{"x", {}}, {"y", {{"a", -1, 0}}}, {"z", {{"a", 1, 0}}}};
  problem.tables = {{"t", 1, 1, {-1}},
                    {"u", 1, 1, {0}},
                    {"v", 2, 2, {0, 3, 1, 0}},
                    {"w", 2, 2, {9, 3, 1, 0}, true}};
  problem.edges = {{0, 0, 0, {}, {}, 1},  {0, 3, 0, {}, {}, 1},   {1, 2, 9, {0}, {0}, 1},
                   {1, 2, 1, {}, {0}, 1}, {1, 2, 1, {1}, {0}, 1}, {1, 2, 1, {0}, {0}, 0},
                   {1, 2, 1, {0}, {0}, 1}};
  using Faults = std::vector<std::string>;
  EXPECT_EQ(faultsOf(problem),
            (Faults{"'x' has no options",
                    ("'y' as 'a': expected numbers of at least 0, got -1.000000 seconds and "
                     "0.000000 bytes"),
                    "table 't': expected 1 x 1 numbers of at least 0",
                    "table 'w': there is a shorter way by a third",
                    "edge 0 joins 0 and 0, expected two of 3 nodes",
                    "edge 1 joins 0 and 3, expected two of 3 nodes",
                    "edge 2 has table 9, expected one of 4",
                    "edge 3 has 0 rows and 1 columns, expected one for each of 1 and 1 options",
                    "edge 4 has a row or column beyond those of table 'u'",
                    "edge 5 has a number of times that is not above 0"}));
}

} // namespace
