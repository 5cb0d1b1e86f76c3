//===- Problem.cpp - the cost of a choice ---------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Planner/Problem.h"

#include <algorithm>
#include <cmath>

namespace weft::planner {

static std::string nameOf(const Problem &problem, uint32_t node, uint32_t option) {
  return "'" + problem.nodes[node].name + "' as '" + problem.nodes[node].options[option].name + "'";
}

Evaluation evaluate(const Problem &problem, const Choice &choice) {
  Evaluation result;
  if (choice.size() != problem.nodes.size()) {
    result.faults.push_back("expected a choice for each of " +
                            std::to_string(problem.nodes.size()) + " nodes, got " +
                            std::to_string(choice.size()));
    return result;
  }
  for (uint32_t node = 0; node < choice.size(); ++node) {
    const std::vector<Option> &options = problem.nodes[node].options;
    if (choice[node] >= options.size()) {
      result.faults.push_back("'" + problem.nodes[node].name + "' has " +
                              std::to_string(options.size()) + " options, and no number " +
                              std::to_string(choice[node]));
      return result;
    }
    const Option &option = options[choice[node]];
    if (!std::isfinite(option.seconds) || !std::isfinite(option.bytes)) {
      result.faults.push_back(nameOf(problem, node, choice[node]) + " is not allowed");
    }
    result.seconds += option.seconds;
    result.bytes += option.bytes;
  }
  for (const Edge &edge : problem.edges) {
    double seconds = problem.seconds(edge, choice[edge.a], choice[edge.b]);
    if (!std::isfinite(seconds)) {
      result.faults.push_back(nameOf(problem, edge.a, choice[edge.a]) + " does not go with " +
                              nameOf(problem, edge.b, choice[edge.b]));
    }
    result.seconds += seconds;
  }
  if (result.faults.empty() && result.bytes > problem.bytesLimit) {
    result.faults.push_back("needs " + std::to_string(result.bytes) + " bytes, expected at most " +
                            std::to_string(problem.bytesLimit));
  }
  return result;
}

static bool isLegal(double number) { return number >= 0; } // And so not undefined.

/// Returns the error of an edge whose nodes and table exist.
static std::string faultOf(const Problem &problem, const Edge &edge) {
  const Table &table = problem.tables[edge.table];
  size_t a = problem.nodes[edge.a].options.size(), b = problem.nodes[edge.b].options.size();
  if (edge.rows.size() != a || edge.columns.size() != b) {
    return "has " + std::to_string(edge.rows.size()) + " rows and " +
           std::to_string(edge.columns.size()) + " columns, expected one for each of " +
           std::to_string(a) + " and " + std::to_string(b) + " options";
  }
  auto below = [](uint32_t limit) { return [limit](uint32_t number) { return number < limit; }; };
  if (!std::all_of(edge.rows.begin(), edge.rows.end(), below(table.rows)) ||
      !std::all_of(edge.columns.begin(), edge.columns.end(), below(table.columns))) {
    return "has a row or column beyond those of table '" + table.name + "'";
  }
  return edge.times > 0 && std::isfinite(edge.times) ? ""
                                                     : "has a number of times that is not above 0";
}

static bool hasShortestWays(const Table &table) {
  if (table.rows != table.columns) {
    return false;
  }
  auto seconds = [&](uint32_t from, uint32_t to) {
    return table.seconds[size_t(from) * table.columns + to];
  };
  for (uint32_t a = 0; a < table.rows; ++a) {
    for (uint32_t b = 0; b < table.rows; ++b) {
      for (uint32_t c = 0; c < table.rows; ++c) {
        if (seconds(a, c) > (seconds(a, b) + seconds(b, c)) * (1 + 1e-9)) {
          return false;
        }
      }
    }
  }
  return true;
}

std::vector<std::string> faultsOf(const Problem &problem) {
  std::vector<std::string> faults;
  for (const Node &node : problem.nodes) {
    if (node.options.empty()) {
      faults.push_back("'" + node.name + "' has no options");
    }
    for (const Option &option : node.options) {
      if (!isLegal(option.seconds) || !isLegal(option.bytes)) {
        faults.push_back("'" + node.name + "' as '" + option.name +
                         "': expected numbers of at least 0, got " +
                         std::to_string(option.seconds) + " seconds and " +
                         std::to_string(option.bytes) + " bytes");
      }
    }
  }
  for (const Table &table : problem.tables) {
    if (table.seconds.size() != size_t(table.rows) * table.columns ||
        !std::all_of(table.seconds.begin(), table.seconds.end(), isLegal)) {
      faults.push_back("table '" + table.name + "': expected " + std::to_string(table.rows) +
                       " x " + std::to_string(table.columns) + " numbers of at least 0");
    } else if (table.isShortest && !hasShortestWays(table)) {
      faults.push_back("table '" + table.name + "': there is a shorter way by a third");
    }
  }
  for (size_t i = 0; i < problem.edges.size(); ++i) {
    const Edge &edge = problem.edges[i];
    std::string name = "edge " + std::to_string(i);
    if (edge.a >= problem.nodes.size() || edge.b >= problem.nodes.size() || edge.a == edge.b) {
      faults.push_back(name + " joins " + std::to_string(edge.a) + " and " +
                       std::to_string(edge.b) + ", expected two of " +
                       std::to_string(problem.nodes.size()) + " nodes");
    } else if (edge.table >= problem.tables.size()) {
      faults.push_back(name + " has table " + std::to_string(edge.table) + ", expected one of " +
                       std::to_string(problem.tables.size()));
    } else if (std::string fault = faultOf(problem, edge); !fault.empty()) {
      faults.push_back(name + " " + fault);
    }
  }
  return faults;
}

} // namespace weft::planner
