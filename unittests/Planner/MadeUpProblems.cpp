//===- MadeUpProblems.cpp - planning problems by chance --------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MadeUpProblems.h"

#include <cmath>
#include <random>

namespace weft::planner {

/// Lets no way by a third be shorter, if rows and columns can be the same.
static void shorten(Table &table) {
  table.isShortest = table.rows == table.columns;
  std::vector<double> seconds(table.seconds.begin(), table.seconds.end());
  for (uint32_t b = 0; table.isShortest && b < table.rows; ++b) {
    for (uint32_t a = 0; a < table.rows; ++a) {
      for (uint32_t c = 0; c < table.rows; ++c) {
        double &way = seconds[a * table.rows + c];
        way = std::min(way, seconds[a * table.rows + b] + seconds[b * table.rows + c]);
      }
    }
  }
  table.seconds = std::move(seconds);
}

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
      // Some options lie alike, and some edges share a table.
      uint32_t rows = 1 + uint32_t(random() % options), columns = 1 + uint32_t(random() % options);
      Table table{"t", rows, columns, {}};
      for (uint32_t i = 0; i < rows * columns; ++i) {
        table.seconds.append(chance(0.1) ? kInfinity : number(5));
      }
      shorten(table);
      Edge edge{a, b, uint32_t(problem.tables.size()), {}, {}, 1 + double(random() % 3)};
      for (size_t i = 0; i < problem.nodes[a].options.size(); ++i) {
        edge.rows.push_back(uint32_t(random() % rows));
      }
      for (size_t i = 0; i < problem.nodes[b].options.size(); ++i) {
        edge.columns.push_back(uint32_t(random() % columns));
      }
      problem.tables.push_back(std::move(table));
      problem.edges.push_back(std::move(edge));
    }
  }
  return problem;
}

} // namespace weft::planner
