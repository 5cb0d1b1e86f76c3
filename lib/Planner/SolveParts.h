//===- SolveParts.h - the steps of solving --------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Steps work on energies: seconds with bytes at some price. An option that no best choice
// needs is struck out, by an energy of infinity. See Solve.h.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PLANNER_SOLVEPARTS_H
#define WEFT_LIB_PLANNER_SOLVEPARTS_H

#include "weft/Planner/Solve.h"

#include <optional>

namespace weft::planner {

/// A problem at one price of memory. Does not own the problem.
struct Energies {
  Energies(const Problem &problem, double price);

  const Problem &problem;
  /// For each node one number for each option.
  std::vector<std::vector<double>> nodes;
  /// For each node, the numbers of its edges.
  std::vector<std::vector<uint32_t>> edgesOf;

  double of(const Choice &choice) const;
  /// What options of `node` take while all other nodes are as in `choice`; but for one edge.
  std::vector<double> around(uint32_t node, const Choice &choice,
                             const Edge *without = nullptr) const;
  /// Options that are not struck out, of all nodes together.
  size_t optionsLeft() const;
};

/// Messages along the edges, from which a lower bound follows whatever they say, and that passes
/// over all nodes make better: sequential tree-reweighted message passing (V. Kolmogorov, 2006).
class ChainBounds {
public:
  explicit ChainBounds(const Problem &problem);

  /// Goes over all nodes and back. Strikes out what no choice of an energy up to `upper` has.
  /// Returns a bound below the energies of all others.
  double pass(Energies &energies, double upper);

  /// For other energies: messages stay, which are a good start, and bounds are forgotten.
  void restart() { bound = -kInfinity; }

  /// A choice that agrees with the messages.
  Choice decode(const Energies &energies) const;

  /// Strikes out all but the best `options` of each node, as far as messages tell.
  void restrictTo(size_t options, Energies &energies) const;

private:
  std::vector<double> &messageTo(uint32_t node, uint32_t edge);
  const std::vector<double> &messageTo(uint32_t node, uint32_t edge) const;
  std::vector<double> sumAt(const Energies &energies, uint32_t node) const;
  double visit(Energies &energies, uint32_t node, bool forth, double upper);
  double send(const Energies &energies, uint32_t node, uint32_t edge,
              const std::vector<double> &sum, double share);

  const Problem &problem;
  /// For each edge, one number for each row, and one for each column.
  std::vector<std::vector<double>> toA, toB;
  /// Of each table, its columns as rows.
  std::vector<std::vector<double>> transposed;
  /// What one chain of edges has of a node's energy: as many chains go through it as it has edges
  /// to later nodes or to earlier ones, whichever are more.
  std::vector<double> share;
  double bound = -kInfinity;
};

struct Elimination {
  Choice choice;
  size_t width = 0;
};

/// The best choice of options that are left; nothing if that would take more than `maxWork` sums.
std::optional<Elimination> eliminate(const Energies &energies, size_t maxWork);

/// Changes `choice`, one node or two neighbours at a time, as long as its energy falls and its
/// bytes stay within `limit`, or do not grow beyond it.
void improve(const Energies &energies, double limit, Choice &choice);

} // namespace weft::planner

#endif // WEFT_LIB_PLANNER_SOLVEPARTS_H
