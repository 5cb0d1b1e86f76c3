//===- ReshardCosts.h - what all ways between shardings cost --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PLANNER_RESHARDCOSTS_H
#define WEFT_PLANNER_RESHARDCOSTS_H

#include "weft/Planner/Reshard.h"

#include <map>

namespace weft::planner {

/// The costs of the cheapest ways between all layouts of one tensor, for a search that asks for
/// most of them: the graph of layouts is made and priced once, and one run of Dijkstra's algorithm
/// gives the costs from a layout to all others. One thread at a time may ask it.
class ReshardCosts {
public:
  /// Of `problem` its ends play no role.
  ReshardCosts(const ReshardProblem &problem, const Price &price);

  /// What `cheapestWay` says for these ends.
  /// REQUIRES: `to` is pending over no axis, over such as `from` is, or `from` over none.
  double cost(const Layout &from, const Layout &to);

private:
  struct Edge {
    uint32_t to;
    double cost;
  };

  uint32_t numberOf(const Layout &layout);
  const std::vector<double> &costsFrom(uint32_t from);

  const ReshardProblem problem;
  const Price price;
  std::map<Layout, uint32_t> numbers;
  std::vector<Layout> layouts;
  std::vector<std::vector<Edge>> edges;
  /// By layout, empty until somebody asks.
  std::vector<std::vector<double>> known;
};

} // namespace weft::planner

#endif // WEFT_PLANNER_RESHARDCOSTS_H
