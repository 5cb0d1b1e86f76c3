//===- Reshard.h - the cheapest path from one sharding to another ---------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A value goes from one sharding to another by steps, each a collective or an op of each
// rank by itself. Shardings are the nodes of a graph and steps its edges, so that the
// cheapest sequence of steps is a shortest path (Dijkstra's algorithm). There is no table
// of cases: a new kind of step is used wherever it is cheaper.
//
// Rows over "dp" to columns over "dp", as a picture of that graph:
//
//      [{"dp"}, {}] ──all-to-all dp──────────────▶ [{}, {"dp"}]
//            │                                        ▲
//            └──all-gather dp──▶ [{}, {}] ──slice dp──┘
//
// The paths differ by the bytes that they send: a rank of n sends (n-1)/n of its shard on
// the first, and n-1 shards on the second. From a pending sum to a cut value, a
// reduce-scatter sends half the bytes of an all-reduce. An all-reduce over an axis within
// nodes and an axis between them becomes a reduce-scatter, an all-reduce and an all-gather
// if the machine's prices make this path cheaper.
//
// Axes of the mesh are numbers from 0 here. Functions keep no state; any number of threads
// may call them.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PLANNER_RESHARD_H
#define WEFT_PLANNER_RESHARD_H

#include "weft-rt/Collective.h"

#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace weft::planner {

/// Numbers of mesh axes.
using Axes = std::vector<uint32_t>;

/// The sharding of a tensor as plain data; see weft/Dialect/Weft/IR/Sharding.h.
struct Layout {
  /// The axes of each dimension, major to minor.
  std::vector<Axes> dims;
  /// The axes over which it is pending, ascending.
  Axes unreduced;
  auto operator<=>(const Layout &) const = default;
};

/// A step of a reshard: a collective (see `collectiveOf`), or work of each rank by itself.
enum class StepKind : uint8_t {
  /// Removes `axes` from the pending axes.
  AllReduce,
  /// Removes `axes` from the pending axes, and cuts `dim` by them.
  ReduceScatter,
  /// Removes `axes` from the end of `dim`.
  AllGather,
  /// Removes `axes` from the end of `dim`, and cuts `otherDim` by them.
  AllToAll,
  /// Sends each rank's whole shard to another rank of the group over `axes`.
  Permute,
  /// Cuts `dim` by `axes`; sends nothing.
  Slice,
  /// Makes the value pending over `axes`: the first rank keeps its value, the others get zeros.
  Partial,
};

/// Returns the collective of a step, or nothing for a step that a rank does by itself.
std::optional<rt::CollectiveKind> collectiveOf(StepKind kind);
/// Returns true for steps that reduce pending values.
bool reduces(StepKind kind);

struct Step {
  StepKind kind;
  /// In the order by which the group numbers its ranks, the first axis major.
  Axes axes;
  uint32_t dim = 0, otherDim = 0;
  /// The layout of the value after the step.
  Layout to;
  /// The price of the step, in a path that cheapestPath returned.
  double cost = 0;
};

struct ReshardProblem {
  /// Ranks along each axis of the mesh.
  std::vector<int64_t> mesh;
  /// The shape of the whole tensor.
  std::vector<int64_t> shape;
  Layout from, to;
  /// Bytes of an element as it is stored, and as reductions send it.
  double elementBytes = 1, reducedBytes = 1;
  /// If true, pending values may be reduce-scattered. False for log-sum-exps, which no library
  /// reduce-scatters.
  bool scatters = true;
  /// If true, pending values are sums. Any value can become a pending sum, even one that was
  /// reduced earlier on the path, to cross slow links.
  bool isSum = true;
};

/// Returns the cost of a step for a rank's operand of `bytes`, at least 0. Of two paths of equal
/// cost the one with fewer steps is chosen.
using Price = std::function<double(StepKind kind, const Axes &axes, double bytes)>;

/// Returns the bytes that one rank of a group of `ranks` sends for an operand of `bytes`, by the
/// algorithms that send least (see weft/Cost/Predictor.h); for a permute, those of the busiest
/// rank.
double bytesSent(StepKind kind, int64_t ranks, double bytes);

struct ReshardPath {
  std::vector<Step> steps;
  /// The sum of the prices of `steps`.
  double cost = 0;
};

/// Returns a cheapest path, always the same one for the same problem; without steps if `from` and
/// `to` are equal. Each layout on the path cuts every dimension into equal shards.
/// REQUIRES: `from` and `to` cut every dimension into equal shards and name every axis at most
/// once; `from` is pending over all axes that `to` is pending over, or `isSum` is true.
ReshardPath cheapestPath(const ReshardProblem &problem, const Price &price);

/// Returns, for each rank of a group over `axes`, the rank of the group that it gets its shard from
/// when a tensor goes from `from` to `to`. A rank that has its shard already keeps it.
/// REQUIRES: both cut each dimension into equally many shards, and differ only by `axes`.
std::vector<uint32_t> permutationSources(const std::vector<int64_t> &mesh, const Axes &axes,
                                         const Layout &from, const Layout &to);

} // namespace weft::planner

#endif // WEFT_PLANNER_RESHARD_H
