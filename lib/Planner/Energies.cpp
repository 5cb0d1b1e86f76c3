//===- Energies.cpp - one number for each option and pair -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SolveParts.h"

#include <algorithm>
#include <map>

namespace weft::planner {

double Energies::of(const Choice &choice) const {
  double sum = 0;
  for (uint32_t node = 0; node < nodes.size(); ++node) {
    sum += nodes[node][choice[node]];
  }
  for (const Pair &pair : pairs) {
    sum += at(pair, choice[pair.a], choice[pair.b]);
  }
  return sum;
}

static void link(Energies &energies) {
  energies.pairsOf.assign(energies.nodes.size(), {});
  for (uint32_t number = 0; number < energies.pairs.size(); ++number) {
    energies.pairsOf[energies.pairs[number].a].push_back(number);
    energies.pairsOf[energies.pairs[number].b].push_back(number);
  }
}

Energies weigh(const Problem &problem, double secondsWeight, double bytesWeight) {
  auto weighted = [&](double seconds, double bytes) {
    // What is forbidden stays so at any price, also at none.
    bool forbidden = seconds == kInfinity || bytes == kInfinity;
    return forbidden ? kInfinity : secondsWeight * seconds + bytesWeight * bytes;
  };
  Energies energies;
  for (const Node &node : problem.nodes) {
    std::vector<double> &numbers = energies.nodes.emplace_back();
    for (const Option &option : node.options) {
      numbers.push_back(weighted(option.seconds, option.bytes));
    }
  }
  std::map<std::pair<uint32_t, uint32_t>, std::vector<double>> tables;
  for (const Edge &edge : problem.edges) {
    uint32_t low = std::min(edge.a, edge.b), high = std::max(edge.a, edge.b);
    size_t rows = energies.options(edge.a), columns = energies.options(edge.b);
    std::vector<double> &table = tables[{low, high}];
    table.resize(rows * columns, 0);
    for (size_t row = 0; row < rows; ++row) {
      for (size_t column = 0; column < columns; ++column) {
        size_t at = row * columns + column;
        double bytes = edge.bytes.empty() ? 0 : edge.bytes[at];
        table[edge.a == low ? at : column * rows + row] += weighted(edge.seconds[at], bytes);
      }
    }
  }
  for (auto &[nodes, table] : tables) {
    energies.pairs.push_back({nodes.first, nodes.second, std::move(table)});
  }
  link(energies);
  return energies;
}

Energies restrictTo(const Energies &energies, const std::vector<std::vector<uint32_t>> &kept) {
  Energies result;
  for (uint32_t node = 0; node < kept.size(); ++node) {
    std::vector<double> &numbers = result.nodes.emplace_back();
    for (uint32_t option : kept[node]) {
      numbers.push_back(energies.nodes[node][option]);
    }
  }
  for (const Pair &pair : energies.pairs) {
    Pair &less = result.pairs.emplace_back(Pair{pair.a, pair.b, {}});
    for (uint32_t a : kept[pair.a]) {
      for (uint32_t b : kept[pair.b]) {
        less.table.push_back(energies.at(pair, a, b));
      }
    }
  }
  link(result);
  return result;
}

} // namespace weft::planner
