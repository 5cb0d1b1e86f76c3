//===- LayoutSpace.h - all layouts of a rank, and the ways between them ---===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A search asks for the cheapest ways between most layouts of most values. Which steps there
// are between layouts depends only on the number of dimensions, so that this graph is made
// once; the size of a value decides which of its layouts cut evenly, and what steps cost.
//
// The layouts that a search chooses from have a number, of which each axis of the mesh is a
// digit: it leaves the value whole (0), cuts dimension digit - 1, or is pending (rank + 1).
// Axes that cut the same dimension stand in the order of the mesh. Ways may lead through other
// orders, and a layout in another order, as a plan may pin it, gets a number of its own.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PLANNER_LAYOUTSPACE_H
#define WEFT_PLANNER_LAYOUTSPACE_H

#include "weft/Planner/Reshard.h"

#include <map>

namespace weft::planner {

/// One thread at a time may use it.
class LayoutSpace {
public:
  /// Of tensors of `rank` dimensions on `mesh`.
  LayoutSpace(std::vector<int64_t> mesh, uint32_t rank);

  /// Digits are from 0 to rank + 1.
  uint32_t digits() const { return rank + 2; }
  uint32_t numberOf(const std::vector<uint32_t> &digits) const;
  /// Of any layout of this rank on this mesh.
  uint32_t numberOf(const Layout &layout) const { return numbers.at(layout); }
  const Layout &layout(uint32_t number) const { return layouts[number]; }
  /// Layouts that axes as digits give; they have the numbers below.
  uint32_t inOrder() const { return ordered; }
  /// All layouts.
  uint32_t size() const { return uint32_t(layouts.size()); }
  /// Parts that `dim` is cut into.
  int64_t shards(uint32_t number, uint32_t dim) const { return cuts[number * rank + dim]; }
  /// Parts of the whole tensor.
  int64_t shards(uint32_t number) const;
  bool isPending(uint32_t number) const { return !layouts[number].unreduced.empty(); }
  /// Whether all parts of a tensor of `shape` are equal.
  bool divides(uint32_t number, const std::vector<int64_t> &shape) const;

  /// What the cheapest ways cost from each of `from` to each of `to`, row by row, for a tensor like
  /// that of `problem`, of which the ends play no role; infinity where one of them does not divide
  /// it, or is pending where no such value can be.
  std::vector<double> costs(const ReshardProblem &problem, bool canPend,
                            const std::vector<uint32_t> &from, const std::vector<uint32_t> &to,
                            const Price &price) const;

private:
  /// A step, without what only a tensor of some size has.
  struct Edge {
    uint32_t to;
    StepKind kind;
    /// Index into `groups`.
    uint16_t group;
  };

  /// A last step, by which a value becomes pending.
  struct Becoming {
    /// Index into those that are wanted.
    size_t column;
    /// The layout before it.
    uint32_t before;
    double cost;
  };

  void addLayout(const Layout &layout);
  void addEdges(uint32_t from);
  std::vector<double> priced(const ReshardProblem &problem, const Price &price) const;
  std::vector<double> costsFrom(uint32_t from, const std::vector<double> &prices) const;
  std::vector<Becoming> becomings(const ReshardProblem &problem, const std::vector<uint32_t> &to,
                                  const Price &price) const;

  const std::vector<int64_t> mesh;
  const uint32_t rank;
  uint32_t ordered = 0;
  std::vector<Layout> layouts;
  std::map<Layout, uint32_t> numbers;
  std::vector<int64_t> cuts;
  /// The edges that leave layout i are those from firstEdge[i] to firstEdge[i + 1].
  std::vector<uint32_t> firstEdge;
  std::vector<Edge> edges;
  std::vector<Axes> groups;
  std::map<Axes, uint16_t> groupNumbers;
};

} // namespace weft::planner

#endif // WEFT_PLANNER_LAYOUTSPACE_H
