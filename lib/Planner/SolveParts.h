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

#include <array>
#include <map>
#include <optional>
#include <tuple>

namespace weft::planner {

/// What stands beside each node of a problem.
struct Graph {
  explicit Graph(const Problem &problem);

  /// The numbers of its edges.
  std::vector<std::vector<uint32_t>> edgesOf;
  /// Nodes that edges join it with, each once, ascending.
  std::vector<std::vector<uint32_t>> neighborsOf;
};

/// A problem at one price of memory. Owns neither the problem nor its graph.
struct Energies {
  Energies(const Problem &problem, const Graph &graph, double price);

  const Problem &problem;
  const Graph &graph;
  /// For each node one number for each option.
  std::vector<std::vector<double>> nodes;

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

  /// Of each edge the numbers at its `a`, and those at its `b`.
  using Messages = std::vector<std::array<std::vector<double>, 2>>;
  Messages messages() const;

  /// For other energies. Bounds are forgotten, and messages are those between `low` and `high`,
  /// which `messages` has returned: `share` of the way from `low`.
  void restart(const Messages &low, const Messages &high, double share);

  /// A choice that agrees with the messages.
  Choice decode(const Energies &energies) const;

  /// Strikes out the options that are further than `distance` from the best one of their node, as
  /// far as messages tell. No choice that has such an option is within that distance of the bound
  /// that there was before the last pass.
  void restrictWithin(double distance, Energies &energies) const;

  /// Strikes out all but the best `options` of each node, as far as messages tell.
  void restrictTo(size_t options, Energies &energies) const;

private:
  /// The rows or columns of a table that options of a node have: each once, ascending, and of each
  /// option its number among them.
  struct Places {
    std::vector<uint32_t> all, of;
  };

  /// The part of a table that an edge asks for, in one direction.
  struct Ways {
    /// From each place of the sender to each of the receiver's, and where ways by a third are not
    /// shorter, then to its own that are not among these; then infinity, up to whole vectors.
    std::vector<double> seconds;
    size_t rows = 0, columns = 0;
    /// The column of each of the sender's own places; empty where ways by a third may be shorter.
    std::vector<uint32_t> own;
  };

  /// An end of an edge.
  struct Port {
    const Places *places;
    const Ways *ways; // From here.
    /// A number for each place.
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
  /// Of each edge, at its `a` and at its `b`.
  std::vector<Port> atA, atB;
  /// What one chain of edges has of a node's energy: as many chains go through it as it has edges
  /// to later nodes or to earlier ones, whichever are more.
  std::vector<double> share;
  double bound = -kInfinity;
  /// Of the node that is visited, and of what it sends.
  std::vector<double> sum, least, message;
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

/// Takes from `other` what saves seconds, as long as `choice`, which is allowed and fits, still
/// does.
void combine(const Problem &problem, const Choice &other, Choice &choice);

} // namespace weft::planner

#endif // WEFT_LIB_PLANNER_SOLVEPARTS_H
