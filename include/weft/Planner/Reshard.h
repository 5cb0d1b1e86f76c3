//===- Reshard.h - the cheapest path from one sharding to another ---------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A value moves from one sharding to another by steps, each a collective or something
// that a rank does by itself. Shardings are the nodes of a graph and steps its edges, so
// that the cheapest path is a shortest path (Dijkstra's algorithm): no table of cases says
// what becomes what, and a step that is new here is found wherever it pays.
//
// Rows over "dp" to columns over "dp", as a picture of that graph:
//
//      [{"dp"}, {}] ──all-to-all dp──────────────▶ [{}, {"dp"}]
//            │                                        ▲
//            └──all-gather dp──▶ [{}, {}] ──slice dp──┘
//
// The paths differ by what they send: a rank of n sends (n-1)/n of its shard on the first,
// and n-1 shards on the second. From a pending sum to a cut value the path by a
// reduce-scatter sends half of that by an all-reduce. All-reduces over an axis within
// nodes and an axis between them become a reduce-scatter, an all-reduce and an all-gather
// where the machine's prices make that the shorter path.
//
// Axes are numbers here, those of the mesh's axes from 0. Functions keep no state; any
// number of threads may call them.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PLANNER_RESHARD_H
#define WEFT_PLANNER_RESHARD_H

#include <compare>
#include <cstdint>
#include <functional>
#include <vector>

namespace weft::planner {

/// Numbers of mesh axes.
using Axes = std::vector<uint32_t>;

/// How a tensor lies on a mesh; what weft/Dialect/Weft/IR/Sharding.h explains, as plain data.
struct Layout {
  /// The axes of each dimension, major to minor.
  std::vector<Axes> dims;
  /// The axes over which it is pending, ascending.
  Axes unreduced;
  auto operator<=>(const Layout &) const = default;
};

enum class StepKind : uint8_t {
  /// Takes `axes` from the pending ones.
  AllReduce,
  /// Takes `axes` from the pending ones, and cuts `dim` by them.
  ReduceScatter,
  /// Takes `axes` from the end of `dim`.
  AllGather,
  /// Takes `axes` from the end of `dim`, and cuts `otherDim` by them.
  AllToAll,
  /// Sends each rank's whole shard to another rank of the group over `axes`.
  Permute,
  /// Cuts `dim` by `axes`; sends nothing.
  Slice,
  /// Makes the value pending over `axes`: the first rank keeps it, the others take zero.
  Partial,
};

struct Step {
  StepKind kind;
  /// In the order that the group counts its ranks by, the first major.
  Axes axes;
  uint32_t dim = 0, otherDim = 0;
  /// How the value lies after the step.
  Layout to;
  /// Its price, in a way.
  double cost = 0;
};

struct ReshardProblem {
  /// Ranks along each axis of the mesh.
  std::vector<int64_t> mesh;
  /// Of the whole tensor.
  std::vector<int64_t> shape;
  Layout from, to;
  /// Bytes of an element as it is stored, and as it is sent where values are added up.
  double elementBytes = 1, reducedBytes = 1;
  /// Whether what is pending can be scattered as it is reduced. No library does so with
  /// log-sum-exps.
  bool scatters = true;
  /// Whether what is pending is a sum. Any value can become pending as that, also one that has been
  /// reduced on the way because what it had to go through is slow.
  bool isSum = true;
};

/// What a step costs that a rank's operand of `bytes` goes through. Not below 0. Steps of cost 0
/// are free, but of two ways of equal cost the one of fewer steps is taken.
using Price = std::function<double(StepKind kind, const Axes &axes, double bytes)>;

/// Bytes that one rank of a group of `ranks` sends, of an operand of `bytes`, in the algorithms
/// that send least (see weft/Cost/Predictor.h); of a permute, what the busiest rank sends.
double bytesSent(StepKind kind, int64_t ranks, double bytes);

struct ReshardPath {
  std::vector<Step> steps;
  /// The sum of their prices.
  double cost = 0;
};

/// A cheapest path, always the same one for the same problem; of no steps if nothing is to do. A
/// layout on the way cuts every dimension into equal shards, as `from` and `to` have to.
/// REQUIRES: `from` is pending over all axes that `to` is pending over, or what is pending is a
/// sum, and both name every axis at most once.
ReshardPath cheapestPath(const ReshardProblem &problem, const Price &price);

/// For each rank of a group over `axes`, the rank of the group whose shard it takes, so that a
/// tensor that lies as `from` then lies as `to`. A rank that has what it wants keeps it. REQUIRES:
/// both cut each dimension into as many shards, and differ only by `axes`.
std::vector<uint32_t> permutationSources(const std::vector<int64_t> &mesh, const Axes &axes,
                                         const Layout &from, const Layout &to);

} // namespace weft::planner

#endif // WEFT_PLANNER_RESHARD_H
