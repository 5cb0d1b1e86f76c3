//===- LayoutSpace.cpp - all layouts of a rank, and the ways between them -===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Planner/LayoutSpace.h"

#include "ReshardSteps.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <queue>

namespace weft::planner {

constexpr double kNoWay = std::numeric_limits<double>::infinity();

LayoutSpace::LayoutSpace(std::vector<int64_t> meshSizes, uint32_t rank)
    : mesh(std::move(meshSizes)), rank(rank) {
  std::vector<uint32_t> digit(mesh.size(), 0);
  for (size_t axis = 0;;) {
    Layout layout{std::vector<Axes>(rank), {}};
    for (uint32_t at = 0; at < mesh.size(); ++at) {
      if (digit[at] == rank + 1) {
        layout.unreduced.push_back(at);
      } else if (digit[at] > 0) {
        layout.dims[digit[at] - 1].push_back(at);
      }
    }
    addLayout(layout);
    for (axis = 0; axis < mesh.size() && ++digit[axis] == digits(); ++axis) {
      digit[axis] = 0;
    }
    if (axis == mesh.size()) {
      break;
    }
  }
  ordered = size();
  for (uint32_t from = 0; from < layouts.size(); ++from) { // `layouts` grows meanwhile.
    addEdges(from);
  }
  firstEdge.push_back(uint32_t(edges.size()));
}

void LayoutSpace::addLayout(const Layout &layout) {
  if (numbers.try_emplace(layout, size()).second) {
    layouts.push_back(layout);
    for (const Axes &axes : layout.dims) {
      cuts.push_back(ranksOver(mesh, axes));
    }
  }
}

void LayoutSpace::addEdges(uint32_t from) {
  ReshardProblem any{mesh, {}, {}, {}, 1, 1, true};
  // All layouts cut this shape evenly.
  any.shape.assign(rank,
                   std::accumulate(mesh.begin(), mesh.end(), int64_t(1), std::multiplies<>()));
  firstEdge.push_back(uint32_t(edges.size()));
  Layout layout = layouts[from];
  ReshardSteps::anywhere(any).forEach(layout, [&](const Step &step) {
    addLayout(step.to);
    auto [group, isNew] = groupNumbers.try_emplace(step.axes, uint16_t(groups.size()));
    if (isNew) {
      groups.push_back(step.axes);
    }
    edges.push_back({numbers.at(step.to), step.kind, group->second});
  });
}

uint32_t LayoutSpace::numberOf(const std::vector<uint32_t> &digit) const {
  uint32_t number = 0;
  for (size_t axis = digit.size(); axis-- > 0;) {
    number = number * digits() + digit[axis];
  }
  return number;
}

int64_t LayoutSpace::shards(uint32_t number) const {
  int64_t product = 1;
  for (uint32_t dim = 0; dim < rank; ++dim) {
    product *= shards(number, dim);
  }
  return product;
}

bool LayoutSpace::divides(uint32_t number, const std::vector<int64_t> &shape) const {
  for (uint32_t dim = 0; dim < rank; ++dim) {
    if (shape[dim] % shards(number, dim) != 0) {
      return false;
    }
  }
  return true;
}

/// Returns the price of each edge; infinity if a layout does not divide a tensor of this shape.
std::vector<double> LayoutSpace::priced(const ReshardProblem &problem, const Price &price) const {
  double elements = 1;
  for (int64_t size : problem.shape) {
    elements *= double(size);
  }
  std::vector<bool> exists;
  for (uint32_t number = 0; number < size(); ++number) {
    exists.push_back(divides(number, problem.shape));
  }
  std::map<std::tuple<StepKind, uint16_t, int64_t>, double> known;
  std::vector<double> prices(edges.size(), kNoWay);
  for (uint32_t from = 0; from < size(); ++from) {
    int64_t parts = shards(from);
    for (uint32_t at = firstEdge[from]; at < firstEdge[from + 1]; ++at) {
      const Edge &edge = edges[at];
      bool allowed = problem.scatters || edge.kind != StepKind::ReduceScatter;
      if (!exists[from] || !exists[edge.to] || !allowed) {
        continue;
      }
      auto [entry, isNew] = known.try_emplace({edge.kind, edge.group, parts}, 0);
      if (isNew) {
        double bytes = reduces(edge.kind) ? problem.reducedBytes : problem.elementBytes;
        entry->second = price(edge.kind, groups[edge.group], elements / double(parts) * bytes);
      }
      prices[at] = entry->second;
    }
  }
  return prices;
}

/// Finds shortest paths by Dijkstra's algorithm.
std::vector<double> LayoutSpace::costsFrom(uint32_t from, const std::vector<double> &prices) const {
  std::vector<double> costs(size(), kNoWay);
  costs[from] = 0;
  using Open = std::pair<double, uint32_t>;
  std::priority_queue<Open, std::vector<Open>, std::greater<>> open;
  open.push({0, from});
  while (!open.empty()) {
    auto [cost, at] = open.top();
    open.pop();
    if (cost > costs[at]) {
      continue;
    }
    for (uint32_t edge = firstEdge[at]; edge < firstEdge[at + 1]; ++edge) {
      double sum = cost + prices[edge];
      if (sum < costs[edges[edge].to]) {
        costs[edges[edge].to] = sum;
        open.push({sum, edges[edge].to});
      }
    }
  }
  return costs;
}

/// Returns the last steps to the pending layouts of `to`, each over some of their axes at once. The
/// layouts before them have the same shards.
std::vector<LayoutSpace::Becoming> LayoutSpace::becomings(const ReshardProblem &problem,
                                                          const std::vector<uint32_t> &to,
                                                          const Price &price) const {
  std::vector<Becoming> found;
  for (size_t column = 0; column < to.size(); ++column) {
    const Layout &layout = layouts[to[column]];
    if (!divides(to[column], problem.shape)) {
      continue;
    }
    for (size_t chosen = 1; chosen < size_t(1) << layout.unreduced.size(); ++chosen) {
      Layout before = {layout.dims, {}};
      Axes coming;
      for (size_t at = 0; at < layout.unreduced.size(); ++at) {
        Axes &place = chosen >> at & 1 ? coming : before.unreduced;
        place.push_back(layout.unreduced[at]);
      }
      double cost =
          price(StepKind::Partial, coming, operandBytes(problem, before, StepKind::Partial));
      found.push_back({column, numbers.at(before), cost});
    }
  }
  return found;
}

std::vector<double> LayoutSpace::costs(const ReshardProblem &problem, bool canPend,
                                       const std::vector<uint32_t> &from,
                                       const std::vector<uint32_t> &to, const Price &price) const {
  std::vector<double> prices = priced(problem, price), table;
  std::vector<Becoming> last;
  if (canPend) {
    last = becomings(problem, to, price);
  }
  table.reserve(from.size() * to.size());
  for (uint32_t row : from) {
    bool exists = divides(row, problem.shape) && (canPend || !isPending(row));
    std::vector<double> costs =
        exists ? costsFrom(row, prices) : std::vector<double>(size(), kNoWay);
    size_t begin = table.size();
    for (uint32_t column : to) {
      table.push_back(costs[column]);
    }
    for (const Becoming &each : last) {
      double &cost = table[begin + each.column];
      cost = std::min(cost, costs[each.before] + each.cost);
    }
  }
  return table;
}

} // namespace weft::planner
