//===- LayoutSpace.h - all layouts of a rank, and the ways between them ---===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A search needs the cost of the cheapest path between most layouts of most values. The graph
// of layouts and steps depends only on the number of dimensions, so that it is built once per
// rank; the shape of a value decides which of its layouts cut it evenly, and the cost of steps.
//
// A search chooses from numbered layouts. Each axis of the mesh is a digit of the number: the
// axis leaves the value whole (0), cuts dimension digit - 1, or is pending (rank + 1). Axes
// that cut the same dimension stand in the order of the mesh. A path may lead through layouts
// with other orders. These have numbers of their own, as a plan may pin them.
//
// Axes of equal size are alike if no step's price tells them apart, as those within a node. A
// path keeps its cost if such axes change their names, so that one search from
//
//      [{"a"}, {"b"}]   serves   [{"b"}, {"a"}]   and   [{"a"}, {"c"}]   and so on.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PLANNER_LAYOUTSPACE_H
#define WEFT_PLANNER_LAYOUTSPACE_H

#include "weft/Planner/Reshard.h"

#include <map>
#include <unordered_map>

namespace weft::planner {

/// All layouts of tensors of one rank on one mesh, and the steps between them. One thread at a time
/// may use it.
class LayoutSpace {
public:
  /// `mesh` has the number of ranks along each axis, and tensors have `rank` dimensions.
  LayoutSpace(std::vector<int64_t> mesh, uint32_t rank);

  /// Number of values of a digit, which is from 0 to rank + 1.
  uint32_t digits() const { return rank + 2; }
  /// The number of the layout with one digit for each axis of the mesh.
  uint32_t numberOf(const std::vector<uint32_t> &digits) const;
  /// The number of any layout of this rank on this mesh.
  uint32_t numberOf(const Layout &layout) const { return numbers.at(layout); }
  const Layout &layout(uint32_t number) const { return layouts[number]; }
  /// Number of layouts whose axes stand in the order of the mesh. Their numbers come first.
  uint32_t inOrder() const { return ordered; }
  /// Number of all layouts.
  uint32_t size() const { return uint32_t(layouts.size()); }
  /// Number of shards that `dim` is cut into.
  int64_t shards(uint32_t number, uint32_t dim) const { return cuts[number * rank + dim]; }
  /// Number of shards of the whole tensor.
  int64_t shards(uint32_t number) const;
  bool isPending(uint32_t number) const { return !layouts[number].unreduced.empty(); }
  /// Returns true if all shards of a tensor of `shape` are equal.
  bool divides(uint32_t number, const std::vector<int64_t> &shape) const;

  /// Returns the costs of the cheapest paths from each of `from` to each of `to`, row by row, for
  /// the tensor of `problem`, whose `from` and `to` are ignored. A cost is infinite if one of the
  /// layouts does not divide the tensor, or is pending although `canPend` is false.
  std::vector<double> costs(const ReshardProblem &problem, bool canPend,
                            const std::vector<uint32_t> &from, const std::vector<uint32_t> &to,
                            const Price &price) const;

private:
  /// A step between layouts of tensors of any size.
  struct Edge {
    uint32_t to;
    StepKind kind;
    /// Index into `groups`.
    uint16_t group;
  };

  /// A last step of a path, by which a value becomes pending.
  struct Becoming {
    /// Index into `to` of costs().
    size_t column;
    /// The layout before the step.
    uint32_t before;
    double cost;
  };

  /// The price of a step, and the layout after it.
  using PricedStep = std::pair<double, uint32_t>;

  /// The steps between layouts of one tensor. Those from layout i are steps[first[i]] to
  /// steps[first[i + 1] - 1], in ascending order.
  struct PricedSteps {
    std::vector<size_t> first;
    std::vector<PricedStep> steps;
  };

  struct Hash {
    size_t operator()(const Layout &layout) const;
  };

  uint32_t addLayout(const Layout &layout);
  void addEdges(uint32_t from);
  PricedSteps priced(const ReshardProblem &problem, const Price &price) const;
  std::vector<double> costsFrom(uint32_t from, const PricedSteps &priced) const;
  const std::vector<uint32_t> &renamed(const Axes &names) const;
  bool areAlike(uint32_t axis, uint32_t other, const PricedSteps &priced) const;
  Axes alike(const PricedSteps &priced) const;
  Axes namesOf(const Layout &layout, const Axes &alike) const;
  std::vector<Becoming> becomings(const ReshardProblem &problem, const std::vector<uint32_t> &to,
                                  const Price &price) const;

  const std::vector<int64_t> mesh;
  const uint32_t rank;
  uint32_t ordered = 0;
  std::vector<Layout> layouts;
  std::unordered_map<Layout, uint32_t, Hash> numbers;
  std::vector<int64_t> cuts;
  /// Edges firstEdge[i] to firstEdge[i + 1] - 1 leave layout i.
  std::vector<uint32_t> firstEdge;
  std::vector<Edge> edges;
  std::vector<Axes> groups;
  std::map<Axes, uint16_t> groupNumbers;
  /// What renamed() has returned: the same for values of all shapes.
  mutable std::map<Axes, std::vector<uint32_t>> renamings;
};

} // namespace weft::planner

#endif // WEFT_PLANNER_LAYOUTSPACE_H
