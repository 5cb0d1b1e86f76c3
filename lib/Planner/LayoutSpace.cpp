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

size_t LayoutSpace::Hash::operator()(const Layout &layout) const {
  size_t hash = 0;
  auto add = [&](const Axes &axes) {
    for (uint32_t axis : axes) {
      hash = (hash ^ (axis + 1)) * 0x9e3779b97f4a7c15;
    }
    hash = (hash ^ (hash >> 29)) * 0xbf58476d1ce4e5b9; // Where the dimension ends.
  };
  std::for_each(layout.dims.begin(), layout.dims.end(), add);
  add(layout.unreduced);
  return hash;
}

uint32_t LayoutSpace::addLayout(const Layout &layout) {
  auto [known, isNew] = numbers.try_emplace(layout, size());
  if (isNew) {
    layouts.push_back(layout);
    for (const Axes &axes : layout.dims) {
      cuts.push_back(ranksOver(mesh, axes));
    }
  }
  return known->second;
}

void LayoutSpace::addEdges(uint32_t from) {
  ReshardProblem any{mesh, {}, {}, {}, 1, 1, true};
  // All layouts cut this shape evenly.
  any.shape.assign(rank,
                   std::accumulate(mesh.begin(), mesh.end(), int64_t(1), std::multiplies<>()));
  firstEdge.push_back(uint32_t(edges.size()));
  Layout layout = layouts[from];
  ReshardSteps::anywhere(any).forEach(layout, [&](const Step &step) {
    uint32_t to = addLayout(step.to);
    auto [group, isNew] = groupNumbers.try_emplace(step.axes, uint16_t(groups.size()));
    if (isNew) {
      groups.push_back(step.axes);
    }
    edges.push_back({to, step.kind, group->second});
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

/// Returns the steps between layouts that divide a tensor of this shape.
LayoutSpace::PricedSteps LayoutSpace::priced(const ReshardProblem &problem,
                                             const Price &price) const {
  double elements = 1;
  for (int64_t size : problem.shape) {
    elements *= double(size);
  }
  std::vector<bool> exists;
  exists.reserve(size());
  for (uint32_t number = 0; number < size(); ++number) {
    exists.push_back(divides(number, problem.shape));
  }
  // By group, then by kind and number of shards.
  std::vector<std::map<std::pair<StepKind, int64_t>, double>> known(groups.size());
  PricedSteps priced;
  for (uint32_t from = 0; from < size(); ++from) {
    int64_t parts = shards(from);
    priced.first.push_back(priced.steps.size());
    for (uint32_t at = firstEdge[from]; at < firstEdge[from + 1]; ++at) {
      const Edge &edge = edges[at];
      bool allowed = problem.scatters || edge.kind != StepKind::ReduceScatter;
      if (!exists[from] || !exists[edge.to] || !allowed) {
        continue;
      }
      auto [entry, isNew] = known[edge.group].try_emplace({edge.kind, parts}, 0);
      if (isNew) {
        double bytes = reduces(edge.kind) ? problem.reducedBytes : problem.elementBytes;
        entry->second = price(edge.kind, groups[edge.group], elements / double(parts) * bytes);
      }
      priced.steps.push_back({entry->second, edge.to});
    }
    std::sort(priced.steps.begin() + ptrdiff_t(priced.first.back()), priced.steps.end());
  }
  priced.first.push_back(priced.steps.size());
  return priced;
}

/// Finds shortest paths by Dijkstra's algorithm.
std::vector<double> LayoutSpace::costsFrom(uint32_t from, const PricedSteps &priced) const {
  std::vector<double> costs(size(), kNoWay);
  costs[from] = 0;
  std::priority_queue<PricedStep, std::vector<PricedStep>, std::greater<>> open;
  open.push({0, from});
  while (!open.empty()) {
    auto [cost, at] = open.top();
    open.pop();
    if (cost > costs[at]) {
      continue;
    }
    for (size_t step = priced.first[at]; step < priced.first[at + 1]; ++step) {
      auto [price, to] = priced.steps[step];
      double sum = cost + price;
      if (sum < costs[to]) {
        costs[to] = sum;
        open.push({sum, to});
      }
    }
  }
  return costs;
}

/// Returns the number of each layout after its axes are renamed by `names`.
const std::vector<uint32_t> &LayoutSpace::renamed(const Axes &names) const {
  auto [known, isNew] = renamings.try_emplace(names);
  std::vector<uint32_t> &after = known->second;
  if (!isNew) {
    return after;
  }
  after.reserve(size());
  for (Layout layout : layouts) {
    auto rename = [&](Axes &axes) {
      std::for_each(axes.begin(), axes.end(), [&](uint32_t &axis) { axis = names[axis]; });
    };
    std::for_each(layout.dims.begin(), layout.dims.end(), rename);
    rename(layout.unreduced);
    std::sort(layout.unreduced.begin(), layout.unreduced.end());
    after.push_back(numbers.at(layout));
  }
  return after;
}

/// Returns true if every step costs as much after the two axes change their names.
bool LayoutSpace::areAlike(uint32_t axis, uint32_t other, const PricedSteps &priced) const {
  if (mesh[axis] != mesh[other]) {
    return false;
  }
  Axes names(mesh.size());
  std::iota(names.begin(), names.end(), 0);
  std::swap(names[axis], names[other]);
  const std::vector<uint32_t> &after = renamed(names);
  std::vector<PricedStep> steps;
  for (uint32_t from = 0; from < size(); ++from) {
    steps.clear();
    for (size_t step = priced.first[from]; step < priced.first[from + 1]; ++step) {
      steps.push_back({priced.steps[step].first, after[priced.steps[step].second]});
    }
    std::sort(steps.begin(), steps.end());
    auto begin = priced.steps.begin();
    if (!std::equal(steps.begin(), steps.end(), begin + ptrdiff_t(priced.first[after[from]]),
                    begin + ptrdiff_t(priced.first[after[from] + 1]))) {
      return false;
    }
  }
  return true;
}

/// Returns, for each axis, the first axis that is like it.
Axes LayoutSpace::alike(const PricedSteps &priced) const {
  Axes firsts;
  for (uint32_t axis = 0; axis < mesh.size(); ++axis) {
    uint32_t first = 0;
    while (first < axis && (firsts[first] != first || !areAlike(first, axis, priced))) {
      ++first;
    }
    firsts.push_back(first);
  }
  return firsts;
}

/// Returns new names for all axes, among those that are alike, by which these ascend in the layout:
/// layouts that differ by such names only become the same layout.
Axes LayoutSpace::namesOf(const Layout &layout, const Axes &alike) const {
  Axes order;
  for (const Axes &axes : layout.dims) {
    order.insert(order.end(), axes.begin(), axes.end());
  }
  order.insert(order.end(), layout.unreduced.begin(), layout.unreduced.end());
  for (uint32_t axis = 0; axis < mesh.size(); ++axis) {
    if (std::find(order.begin(), order.end(), axis) == order.end()) {
      order.push_back(axis);
    }
  }
  Axes names(mesh.size()), next = alike;
  for (uint32_t axis : order) {
    uint32_t &name = next[alike[axis]];
    names[axis] = name;
    // The next axis that is alike, if there is one.
    do {
      ++name;
    } while (name < mesh.size() && alike[name] != alike[axis]);
  }
  return names;
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
  const PricedSteps steps = priced(problem, price);
  std::vector<Becoming> last;
  if (canPend) {
    last = becomings(problem, to, price);
  }
  // Layouts that differ only by the names of axes that are alike have the same costs, to layouts
  // that are renamed in the same way.
  struct Row {
    size_t number;
    const std::vector<uint32_t> *after;
  };
  const Axes same = alike(steps);
  std::map<uint32_t, std::vector<Row>> rowsLike;
  for (size_t row = 0; row < from.size(); ++row) {
    if (divides(from[row], problem.shape) && (canPend || !isPending(from[row]))) {
      Axes names = namesOf(layouts[from[row]], same);
      const std::vector<uint32_t> &after = renamed(names);
      rowsLike[after[from[row]]].push_back({row, &after});
    }
  }
  std::vector<double> table(from.size() * to.size(), kNoWay);
  for (const auto &[first, rows] : rowsLike) {
    const std::vector<double> costs = costsFrom(first, steps);
    for (const Row &row : rows) {
      double *cells = table.data() + row.number * to.size();
      for (size_t column = 0; column < to.size(); ++column) {
        cells[column] = costs[(*row.after)[to[column]]];
      }
      for (const Becoming &each : last) {
        double sum = costs[(*row.after)[each.before]] + each.cost;
        cells[each.column] = std::min(cells[each.column], sum);
      }
    }
  }
  return table;
}

} // namespace weft::planner
