//===- ReshardCosts.cpp - what all ways between shardings cost ------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Planner/ReshardCosts.h"

#include "ReshardSteps.h"

#include <algorithm>
#include <limits>
#include <queue>

namespace weft::planner {

ReshardCosts::ReshardCosts(const ReshardProblem &problem, const Price &price)
    : problem(problem), price(price) {
  // From the whole value, pending over any axes, slices lead everywhere.
  for (uint32_t pending = 0; pending < 1u << problem.mesh.size(); ++pending) {
    Layout whole{std::vector<Axes>(problem.shape.size()), {}};
    for (uint32_t axis = 0; axis < problem.mesh.size(); ++axis) {
      if (pending >> axis & 1) {
        whole.unreduced.push_back(axis);
      }
    }
    numberOf(whole);
  }
  ReshardSteps steps = ReshardSteps::anywhere(this->problem);
  for (size_t from = 0; from < layouts.size(); ++from) { // Which grows as it is walked.
    Layout layout = layouts[from];
    steps.forEach(layout, [&](const Step &step) {
      double cost = price(step.kind, step.axes, operandBytes(problem, layout, step.kind));
      uint32_t to = numberOf(step.to);
      edges[from].push_back({to, cost});
    });
  }
  known.resize(layouts.size());
}

uint32_t ReshardCosts::numberOf(const Layout &layout) {
  auto [it, isNew] = numbers.try_emplace(layout, uint32_t(layouts.size()));
  if (isNew) {
    layouts.push_back(layout);
    edges.emplace_back();
  }
  return it->second;
}

const std::vector<double> &ReshardCosts::costsFrom(uint32_t from) {
  std::vector<double> &costs = known[from];
  if (!costs.empty()) {
    return costs;
  }
  costs.assign(layouts.size(), std::numeric_limits<double>::infinity());
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
    for (const Edge &edge : edges[at]) {
      if (cost + edge.cost < costs[edge.to]) {
        costs[edge.to] = cost + edge.cost;
        open.push({costs[edge.to], edge.to});
      }
    }
  }
  return costs;
}

double ReshardCosts::cost(const Layout &from, const Layout &to) {
  Axes coming;
  std::set_difference(to.unreduced.begin(), to.unreduced.end(), from.unreduced.begin(),
                      from.unreduced.end(), std::back_inserter(coming));
  if (coming.empty()) {
    return costsFrom(numbers.at(from))[numbers.at(to)];
  }
  // What becomes pending does so last, when pieces are as they have to be.
  Layout before = to;
  std::erase_if(before.unreduced, [&](uint32_t axis) {
    return std::find(coming.begin(), coming.end(), axis) != coming.end();
  });
  return costsFrom(numbers.at(from))[numbers.at(before)] +
         price(StepKind::Partial, coming, operandBytes(problem, before, StepKind::Partial));
}

} // namespace weft::planner
