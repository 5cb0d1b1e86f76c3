//===- SolveParts.h - the steps of solving --------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The steps of the solver work on energies: seconds + price * bytes. Striking out an option sets
// its energy to infinity. See Solve.h.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PLANNER_SOLVEPARTS_H
#define WEFT_LIB_PLANNER_SOLVEPARTS_H

#include "weft/Planner/Solve.h"

#include <array>
#include <map>
#include <optional>
#include <tuple>

namespace weft::planner {

/// The edges and neighbours of each node of a problem.
struct Graph {
  explicit Graph(const Problem &problem);

  /// For each node, the numbers of its edges.
  std::vector<std::vector<uint32_t>> edgesOf;
  /// For each node, its neighbours, each once, ascending.
  std::vector<std::vector<uint32_t>> neighborsOf;
};

/// A problem at one price of memory. Owns neither the problem nor its graph.
struct Energies {
  Energies(const Problem &problem, const Graph &graph, double price);

  const Problem &problem;
  const Graph &graph;
  /// For each node, the energy of each option.
  std::vector<std::vector<double>> nodes;

  double of(const Choice &choice) const;
  /// Returns the energy of each option of `node` with its edges while all other nodes are as in
  /// `choice`. The edge `without`, if not null, does not count.
  std::vector<double> around(uint32_t node, const Choice &choice,
                             const Edge *without = nullptr) const;
  /// Returns the number of options that are not struck out, of all nodes together.
  size_t optionsLeft() const;
};

/// Messages along the edges. Any messages give a lower bound, and each pass over all nodes improves
/// it: sequential tree-reweighted message passing (V. Kolmogorov, 2006).
class ChainBounds {
public:
  explicit ChainBounds(const Problem &problem);

  /// Goes over all nodes and back. Strikes out options that no choice with an energy up to `upper`
  /// has. Returns a lower bound on the energies of all remaining choices.
  double pass(Energies &energies, double upper);

  /// For each edge, the message at its `a` and the message at its `b`.
  using Messages = std::vector<std::array<std::vector<double>, 2>>;
  Messages messages() const;

  /// Starts again for other energies. Forgets the bound, and interpolates messages between `low`
  /// and `high`, two results of messages(): `share` of the way from `low`.
  void restart(const Messages &low, const Messages &high, double share);

  /// Returns a choice that agrees with the messages.
  Choice decode(const Energies &energies) const;

  /// Strikes out the options that are, by their messages, further than `distance` from the best one
  /// of their node. No choice with such an option is within this distance of the bound before the
  /// last pass.
  void restrictWithin(double distance, Energies &energies) const;

  /// Strikes out all but the best `options` of each node, by their messages.
  void restrictTo(size_t options, Energies &energies) const;

private:
  /// The rows or columns of a table that options of a node have: each once, ascending (`all`), and
  /// for each option an index into these (`of`).
  struct Places {
    std::vector<uint32_t> all, of;
  };

  /// The part of a table that an edge needs, in one direction.
  struct Ways {
    /// For each place of the sender, the seconds to each place of the receiver and, if the table is
    /// shortest, to the sender's own other places; padded with infinity to whole vectors.
    std::vector<double> seconds;
    size_t rows = 0, columns = 0;
    /// The column of each of the sender's own places; empty unless the table is shortest.
    std::vector<uint32_t> own;
  };

  /// An end of an edge.
  struct Port {
    const Places *places;
    const Ways *ways; // From here.
    /// One number for each of `places`.
    std::vector<double> message;
  };

  const Places *placesOf(const std::vector<uint32_t> &ofOptions);
  const Ways *waysOf(uint32_t table, const Places *from, const Places *to, bool turned);
  Port &portOf(uint32_t node, uint32_t edge);
  const Port &portOf(uint32_t node, uint32_t edge) const;
  void sumAt(const Energies &energies, uint32_t node, std::vector<double> &sum) const;
  double visit(Energies &energies, uint32_t node, bool forth, double upper);
  double send(const Energies &energies, uint32_t node, uint32_t edge, double share);

  const Problem &problem;
  std::map<std::vector<uint32_t>, Places> knownPlaces;
  std::map<std::tuple<uint32_t, const Places *, const Places *, bool>, Ways> knownWays;
  /// For each edge, its end at `a` and its end at `b`.
  std::vector<Port> atA, atB;
  /// For each node, the share of its energy that one chain of edges gets. The number of chains
  /// through a node is that of its edges to later nodes or to earlier ones, whichever is greater.
  std::vector<double> share;
  double bound = -kInfinity;
  /// Buffers for the node being visited, and for the messages that it sends.
  std::vector<double> sum, least, message;
};

struct Elimination {
  Choice choice;
  size_t width = 0;
};

/// Returns the best choice of the remaining options; nothing if that would take more than `maxWork`
/// sums.
std::optional<Elimination> eliminate(const Energies &energies, size_t maxWork);

/// Improves `choice`, one node or two neighbours at a time, while its energy falls. Its bytes stay
/// within `limit` or, if they exceed it already, do not grow.
void improve(const Energies &energies, double limit, Choice &choice);

/// Changes nodes of `choice`, which is allowed and fits, to their options in `other` if that saves
/// seconds and `choice` still fits.
void combine(const Problem &problem, const Choice &other, Choice &choice);

} // namespace weft::planner

#endif // WEFT_LIB_PLANNER_SOLVEPARTS_H
