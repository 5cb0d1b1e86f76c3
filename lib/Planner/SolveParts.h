//===- SolveParts.h - the steps of solving --------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Steps work on energies: one number for each option and each pair of options, seconds
// with bytes at some price. See Solve.h.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PLANNER_SOLVEPARTS_H
#define WEFT_LIB_PLANNER_SOLVEPARTS_H

#include "weft/Planner/Solve.h"

namespace weft::planner {

/// Two nodes, a < b, and a number for each two of their options, those of a major.
struct Pair {
  uint32_t a = 0, b = 0;
  std::vector<double> table;
};

struct Energies {
  std::vector<std::vector<double>> nodes;
  /// At most one for any two nodes, ordered by them.
  std::vector<Pair> pairs;
  /// For each node, the numbers of its pairs.
  std::vector<std::vector<uint32_t>> pairsOf;

  size_t options(uint32_t node) const { return nodes[node].size(); }
  double at(const Pair &pair, uint32_t optionA, uint32_t optionB) const {
    return pair.table[optionA * options(pair.b) + optionB];
  }
  double of(const Choice &choice) const;
};

/// `secondsWeight` * seconds + `bytesWeight` * bytes.
Energies weigh(const Problem &problem, double secondsWeight, double bytesWeight);

/// The options of each node that some best choice may need, ascending; at least one of each.
std::vector<std::vector<uint32_t>> strikeDeadEnds(const Energies &energies);

/// Only the options of `kept`.
Energies restrictTo(const Energies &energies, const std::vector<std::vector<uint32_t>> &kept);

struct Elimination {
  Choice choice;
  /// No choice has a lower energy. That of `choice` if no table was split.
  double bound = 0;
  size_t width = 0;
};

Elimination eliminate(const Energies &energies, size_t maxTable);

/// Changes `choice`, one node or two neighbours at a time, as long as its energy falls and the
/// change of `bytes` keeps it within `limit`. `bytes` are energies of the same problem.
void improve(const Energies &energies, const Energies &bytes, double limit, Choice &choice);

} // namespace weft::planner

#endif // WEFT_LIB_PLANNER_SOLVEPARTS_H
