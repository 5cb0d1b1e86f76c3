//===- SolveTest.cpp - the best choice of a planning problem --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Planner/Solve.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

using namespace weft::planner;

namespace {

/// A random problem. Numbers are small and whole, so that there are many ties, or fractions.
Problem makeProblem(uint32_t seed, uint32_t nodes, uint32_t options, double density, bool ties) {
  std::mt19937 random(seed);
  auto number = [&](double scale) {
    double value = double(random()) / 4294967296.0 * scale;
    return ties ? std::floor(value) : value;
  };
  auto chance = [&](double share) { return double(random()) / 4294967296.0 < share; };
  Problem problem;
  for (uint32_t node = 0; node < nodes; ++node) {
    problem.nodes.push_back({"n" + std::to_string(node), {}});
    for (uint32_t option = 0, count = 1 + uint32_t(random() % options); option < count; ++option) {
      problem.nodes.back().options.push_back(
          {"o" + std::to_string(option), chance(0.1) ? kInfinity : number(9), number(9)});
    }
  }
  for (uint32_t a = 0; a < nodes; ++a) {
    for (uint32_t b = 0; b < nodes; ++b) {
      if (a == b || !chance(density)) {
        continue;
      }
      Edge edge{a, b, {}, {}};
      bool takesMemory = chance(0.5);
      for (size_t i = 0; i < problem.nodes[a].options.size() * problem.nodes[b].options.size();
           ++i) {
        edge.seconds.push_back(chance(0.1) ? kInfinity : number(5));
        if (takesMemory) {
          edge.bytes.push_back(number(5));
        }
      }
      problem.edges.push_back(edge);
    }
  }
  return problem;
}

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
  for (uint32_t seed = 0; seed < 400; ++seed) {
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
  EXPECT_GT(tight, 100);
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
  problem.bytesLimit = 40;
  EXPECT_TRUE(solve(problem).found());
}

TEST(Solve, SplitTablesStillBound) {
  int equal = 0, all = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    Problem problem = makeProblem(seed + 5000, 8, 3, 0.6, false);
    Solution best = solve(problem), split = solve(problem, {.maxTable = 9});
    expectConsistent(problem, split);
    if (best.found() && split.found()) {
      ASSERT_LE(split.lowerBound, best.seconds * (1 + 1e-9)) << "seed " << seed;
      ASSERT_GE(split.seconds, best.seconds * (1 - 1e-9)) << "seed " << seed;
      equal += split.seconds <= best.seconds * (1 + 1e-9);
      ++all;
    }
  }
  EXPECT_GT(all, 50);
  EXPECT_GT(equal, all / 2);
}

TEST(Solve, ALongChainIsNarrow) {
  Problem problem;
  for (uint32_t node = 0; node < 2000; ++node) {
    problem.nodes.push_back({"n", {}});
    for (uint32_t option = 0; option < 8; ++option) {
      problem.nodes.back().options.push_back({"o", double((node * 7 + option * 5) % 11), 1});
    }
    if (node > 0) {
      Edge edge{node - 1, node, {}, {}};
      for (uint32_t pair = 0; pair < 64; ++pair) {
        edge.seconds.push_back(pair / 8 == pair % 8 ? 0 : 3);
      }
      problem.edges.push_back(edge);
    }
  }
  Solution solution = solve(problem);
  EXPECT_LE(solution.width, 2u); // A node in the middle has two neighbours.
  EXPECT_NEAR(solution.lowerBound, solution.seconds, 1e-9);
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
  problem.edges = {{0, 1, {kInfinity, 0}, {}}};
  problem.bytesLimit = 3;
  using Faults = std::vector<std::string>;
  EXPECT_EQ(evaluate(problem, {0}).faults, Faults{"expected a choice for each of 2 nodes, got 1"});
  EXPECT_EQ(evaluate(problem, {2, 0}).faults, Faults{"'x' has 2 options, and no number 2"});
  EXPECT_EQ(evaluate(problem, {0, 0}).faults,
            Faults{"'x' as 'whole' does not go with 'y' as 'whole'"});
  EXPECT_EQ(evaluate(problem, {1, 0}).faults, Faults{"'x' as 'cut' is not allowed"});
  problem.edges[0].seconds = {0, 0};
  EXPECT_EQ(evaluate(problem, {0, 0}).faults,
            Faults{"needs 10.000000 bytes, expected at most 3.000000"});
}

TEST(Problem, NamesWhatIsWrong) {
  Problem problem;
  problem.nodes = {{"x", {}}, {"y", {{"a", -1, 0}}}};
  problem.edges = {{0, 0, {}, {}}, {0, 2, {}, {}}, {0, 1, {1}, {}}};
  std::vector<std::string> faults = faultsOf(problem);
  ASSERT_EQ(faults.size(), 5u);
  EXPECT_EQ(faults[0], "'x' has no options");
  EXPECT_EQ(faults[1], "'y' as 'a': expected numbers of at least 0, got -1.000000 seconds and "
                       "0.000000 bytes");
  EXPECT_EQ(faults[2], "edge 0 joins 0 and 0, expected two of 2 nodes");
  EXPECT_EQ(faults[3], "edge 1 joins 0 and 2, expected two of 2 nodes");
  EXPECT_EQ(faults[4], "edge 2 has 1 times and 0 sizes, expected 0");
}

} // namespace
