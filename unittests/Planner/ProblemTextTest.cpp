//===- ProblemTextTest.cpp - planning problems and solutions as text ------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MadeUpProblems.h"

#include "weft/Planner/ProblemText.h"

#include <gtest/gtest.h>

using namespace weft::planner;

namespace {

const std::string kSmall = R"(limit 8
node "matmul"
  option "whole" 3 6
  option "cut" 1 3
node "sum"
  option "whole" 2 0
table "t" shortest
  row 0 1
  row inf 0
edge "matmul" "sum" "t" times 2
)";

void expectEqual(const Problem &a, const Problem &b) {
  ASSERT_EQ(a.nodes.size(), b.nodes.size());
  ASSERT_EQ(a.tables.size(), b.tables.size());
  ASSERT_EQ(a.edges.size(), b.edges.size());
  EXPECT_EQ(a.bytesLimit, b.bytesLimit);
  for (size_t node = 0; node < a.nodes.size(); ++node) {
    EXPECT_EQ(a.nodes[node].name, b.nodes[node].name);
    ASSERT_EQ(a.nodes[node].options.size(), b.nodes[node].options.size());
    for (size_t option = 0; option < a.nodes[node].options.size(); ++option) {
      const Option &ofA = a.nodes[node].options[option], &ofB = b.nodes[node].options[option];
      EXPECT_EQ(ofA.name, ofB.name);
      EXPECT_EQ(ofA.seconds, ofB.seconds);
      EXPECT_EQ(ofA.bytes, ofB.bytes);
    }
  }
  for (size_t table = 0; table < a.tables.size(); ++table) {
    EXPECT_EQ(a.tables[table].name, b.tables[table].name);
    EXPECT_EQ(a.tables[table].rows, b.tables[table].rows);
    EXPECT_EQ(a.tables[table].columns, b.tables[table].columns);
    EXPECT_EQ(a.tables[table].seconds, b.tables[table].seconds);
    EXPECT_EQ(a.tables[table].isShortest, b.tables[table].isShortest);
  }
  for (size_t edge = 0; edge < a.edges.size(); ++edge) {
    EXPECT_EQ(a.edges[edge].a, b.edges[edge].a);
    EXPECT_EQ(a.edges[edge].b, b.edges[edge].b);
    EXPECT_EQ(a.edges[edge].table, b.edges[edge].table);
    EXPECT_EQ(a.edges[edge].rows, b.edges[edge].rows);
    EXPECT_EQ(a.edges[edge].columns, b.edges[edge].columns);
    EXPECT_EQ(a.edges[edge].times, b.edges[edge].times);
  }
}

std::string errorsOf(const std::string &text) {
  return weft::desc::str(parseProblem(text, "p").diagnostics());
}

TEST(ProblemText, IsReadAsItWasPrinted) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    Problem problem = makeProblem(seed, 2 + seed % 6, 4, 0.4, seed % 2);
    problem.bytesLimit = seed % 3 ? double(seed) / 7 : kInfinity;
    problem.nodes[0].name = "\"\\\n x";
    problem.nodes[0].options[0].name = "";
    problem.nodes[1].name = seed % 5 ? "n1" : problem.nodes[0].name;
    std::string text = printProblem(problem);
    auto again = parseProblem(text, "p");
    ASSERT_TRUE(bool(again)) << weft::desc::str(again.diagnostics());
    expectEqual(*again, problem);
    EXPECT_EQ(printProblem(*again), text);
  }
}

TEST(ProblemText, IsWrittenByHand) {
  auto problem =
      parseProblem("# Nothing.\n" + kSmall + "\n  rows 1 0 # Twice.\n\tcolumns 1\r\n", "p");
  ASSERT_TRUE(bool(problem)) << weft::desc::str(problem.diagnostics());
  EXPECT_EQ(problem->bytesLimit, 8);
  EXPECT_EQ(problem->nodes[0].options[1].seconds, 1);
  EXPECT_TRUE(problem->tables[0].isShortest);
  EXPECT_EQ(problem->edges[0].rows, (std::vector<uint32_t>{1, 0}));
  EXPECT_EQ(problem->edges[0].columns, (std::vector<uint32_t>{1}));
  EXPECT_EQ(problem->seconds(problem->edges[0], 1, 0), 2);
  Solution solution = solve(*problem);
  EXPECT_EQ(solution.seconds, 5); // The matmul whole: 3 s, 2 s for the sum, and nothing between.
}

TEST(ProblemText, SaysWhatIsWrong) {
  EXPECT_EQ(errorsOf(""), "p: expected at least one node\n");
  EXPECT_EQ(errorsOf("nodes"), "p:1:1: expected 'limit', 'node', 'table' or 'edge', got 'nodes'\n");
  EXPECT_EQ(errorsOf("node x\nlimit\nlimit 1 2"),
            "p:1:6: expected the name of the node in quotes, got 'x'\n"
            "p:2:1: expected a number at the end of the line\n"
            "p:3:9: expected the end of the line, got '2'\n");
  EXPECT_EQ(errorsOf("limit -1\nlimit nan\nlimit 1e\n\"limit\""),
            "p:1:7: expected a number of at least 0 or 'inf', got '-1'\n"
            "p:2:7: expected a number of at least 0 or 'inf', got 'nan'\n"
            "p:3:7: expected a number of at least 0 or 'inf', got '1e'\n"
            "p:4:1: expected 'limit', 'node', 'table' or 'edge', got \"limit\"\n");
  EXPECT_EQ(errorsOf("node \"x\nnode \"\\t\""), "p:1:6: expected a '\"' at the end of the name\n"
                                                "p:2:7: expected \\\", \\\\ or \\n in a name\n");
  EXPECT_EQ(errorsOf("node \"x\"\n  row 1"),
            "p:2:3: expected 'option', 'limit', 'node', 'table' or 'edge', got 'row'\n");
  EXPECT_EQ(errorsOf("table \"x\" short\n  row 1\n  row 1 2"),
            "p:1:11: expected 'shortest', got 'short'\n"
            "p:3:9: expected 1 numbers as in the first row, got 2\n");
}

TEST(ProblemText, SaysWhatAnEdgeCannotJoin) {
  EXPECT_EQ(errorsOf(kSmall +
                     "node \"sum\"\n  option \"o\" 1 1\nedge \"matmul\" \"sum\" \"t\"\n"
                     "edge #0 #3 \"t\"\nedge 0 #1 \"t\"\nedge #0 #1 \"u\"\nedge #0 #1 #0 2\n"
                     "  rows 0 -1\n  columns 4294967296\n"),
            "p:13:15: there are several nodes \"sum\", expected a number as in #1\n"
            "p:14:9: expected one of 3 nodes, got #3\n"
            "p:15:6: expected the name of a node in quotes, or its number as in #0, got '0'\n"
            "p:16:12: there is no table \"u\" above\n"
            "p:17:15: expected 'times', got '2'\n"
            "p:18:10: expected a whole number below 4294967296, got '-1'\n"
            "p:19:11: expected a whole number below 4294967296, got '4294967296'\n");
  EXPECT_EQ(errorsOf(kSmall + "  rows 0\n"), "p: edge 0 has 1 rows and 1 columns, expected one for "
                                             "each of 2 and 1 options\n");
}

TEST(SolutionText, IsReadAsItWasPrinted) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    Problem problem = makeProblem(seed, 2 + seed % 6, 4, 0.4, seed % 2);
    problem.bytesLimit = 2 * double(seed % 20);
    problem.nodes[0].name = problem.nodes[1].name;
    Solution solution = solve(problem);
    std::string text = printSolution(problem, solution);
    auto again = parseSolution(problem, text, "s");
    ASSERT_TRUE(bool(again)) << text << weft::desc::str(again.diagnostics());
    EXPECT_EQ(again->choice, solution.choice);
    EXPECT_EQ(again->smallest, solution.smallest);
    EXPECT_EQ(again->seconds, solution.seconds);
    EXPECT_EQ(again->bytes, solution.bytes);
    EXPECT_EQ(again->lowerBound, solution.lowerBound);
    EXPECT_EQ(again->smallestBytes, solution.smallestBytes);
    EXPECT_EQ(again->width, solution.width);
    EXPECT_EQ(again->optionsLeft, solution.optionsLeft);
    EXPECT_EQ(printSolution(problem, *again), text);
  }
}

TEST(SolutionText, SaysWhatIsWrong) {
  Problem problem = *parseProblem(kSmall, "p");
  auto errorsOf = [&](const std::string &text) {
    return weft::desc::str(parseSolution(problem, text, "s").diagnostics());
  };
  EXPECT_EQ(errorsOf("seconds 1\nbytes 1\nwidth 1\nleft 1\nchoice\n  take \"sum\" \"whole\"\n"),
            "s: expected a line 'bound'\n"
            "s: expected 'take' for node \"matmul\" in each choice\n");
  EXPECT_EQ(
      errorsOf("seconds 1\nseconds 2\ntake \"sum\" \"whole\"\nchoice\n  take \"sum\" \"cut\"\n"
               "  take \"sum\" #0\n  take #1 #0\n"),
      "s:2:1: 'seconds' stands here a second time\n"
      "s:3:1: expected 'seconds', 'bytes', 'bound', 'width', 'left', 'choice', 'smallest' or "
      "below these 'take', got 'take'\n"
      "s:5:14: there is no option \"cut\" above\n"
      "s:7:11: an option of node \"sum\" was taken before\n");
}

} // namespace
