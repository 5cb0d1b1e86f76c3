//===- Reshard.cpp - the cheapest path from one sharding to another -------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Planner/Reshard.h"

#include "ReshardSteps.h"

#include <algorithm>
#include <map>
#include <set>

namespace weft::planner {

namespace {

/// Cheaper paths first, then shorter ones, then those along outer dimensions, whose shards are
/// contiguous in memory.
struct Length {
  double cost = 0;
  size_t steps = 0, dims = 0;
  auto operator<=>(const Length &) const = default;
};

class Search {
public:
  Search(const ReshardProblem &problem, const Price &price)
      : problem(problem), price(price), neighbors(ReshardSteps::between(problem)) {}

  ReshardPath run() {
    reached[problem.from] = {};
    open.insert({Length{}, problem.from});
    while (!open.empty()) {
      auto [length, layout] = *open.begin();
      open.erase(open.begin());
      if (layout == problem.to) {
        return {wayTo(layout), length.cost};
      }
      neighbors.forEach(layout, [&, &layout = layout, &length = length](Step step) {
        relax(layout, length, std::move(step));
      });
    }
    return {}; // Unreachable: gathers lead to the whole value, and slices from there to all others.
  }

private:
  struct Arrival {
    Length length;
    Layout before;
    Step step;
  };

  void relax(const Layout &layout, Length length, Step step) {
    step.cost = price(step.kind, step.axes, operandBytes(problem, layout, step.kind));
    length.cost += step.cost;
    ++length.steps;
    length.dims += step.dim + step.otherDim;
    auto [known, isNew] = reached.try_emplace(step.to);
    if (!isNew && known->second.length <= length) {
      return;
    }
    if (!isNew) {
      open.erase({known->second.length, step.to});
    }
    open.insert({length, step.to});
    known->second = {length, layout, std::move(step)};
  }

  std::vector<Step> wayTo(Layout layout) {
    std::vector<Step> steps;
    while (layout != problem.from) {
      Arrival &arrival = reached[layout];
      steps.push_back(arrival.step);
      layout = arrival.before;
    }
    std::reverse(steps.begin(), steps.end());
    return steps;
  }

  const ReshardProblem &problem;
  const Price &price;
  const ReshardSteps neighbors;
  std::map<Layout, Arrival> reached;
  std::set<std::pair<Length, Layout>> open;
};

/// Numbers the shards of a tensor in `layout` that the ranks of a group hold.
class Shards {
public:
  Shards(const std::vector<int64_t> &mesh, const Axes &group, const Layout &layout)
      : mesh(mesh), group(group), layout(layout) {}

  /// Returns the shard of rank `member` of the group; the coordinates of all other axes are 0.
  int64_t of(int64_t member) const {
    std::vector<int64_t> coordinates(mesh.size(), 0);
    for (size_t at = group.size(); at-- > 0;) {
      coordinates[group[at]] = member % mesh[group[at]];
      member /= mesh[group[at]];
    }
    int64_t shard = 0;
    for (const Axes &dim : layout.dims) {
      for (uint32_t axis : dim) {
        shard = shard * mesh[axis] + coordinates[axis];
      }
    }
    return shard;
  }

private:
  const std::vector<int64_t> &mesh;
  const Axes &group;
  const Layout &layout;
};

} // namespace

std::optional<rt::CollectiveKind> collectiveOf(StepKind kind) {
  switch (kind) {
  case StepKind::AllReduce:
    return rt::CollectiveKind::AllReduce;
  case StepKind::ReduceScatter:
    return rt::CollectiveKind::ReduceScatter;
  case StepKind::AllGather:
    return rt::CollectiveKind::AllGather;
  case StepKind::AllToAll:
    return rt::CollectiveKind::AllToAll;
  case StepKind::Permute:
    return rt::CollectiveKind::Permute;
  case StepKind::Slice:
  case StepKind::Partial:
    break;
  }
  return std::nullopt;
}

bool reduces(StepKind kind) {
  std::optional<rt::CollectiveKind> collective = collectiveOf(kind);
  return collective && rt::isReduction(*collective);
}

double bytesSent(StepKind kind, int64_t ranks, double bytes) {
  double others = double(ranks - 1);
  switch (kind) {
  case StepKind::AllReduce:
    return 2 * bytes * others / double(ranks);
  case StepKind::ReduceScatter:
  case StepKind::AllToAll:
    return bytes * others / double(ranks);
  case StepKind::AllGather:
    return bytes * others;
  case StepKind::Permute:
    return bytes;
  case StepKind::Slice:
  case StepKind::Partial:
    return 0;
  }
  return 0;
}

ReshardPath cheapestPath(const ReshardProblem &problem, const Price &price) {
  return Search(problem, price).run();
}

std::vector<uint32_t> permutationSources(const std::vector<int64_t> &mesh, const Axes &axes,
                                         const Layout &from, const Layout &to) {
  Shards has(mesh, axes, from), wants(mesh, axes, to);
  uint32_t ranks = uint32_t(ranksOver(mesh, axes));
  std::vector<uint32_t> sources(ranks, ranks);
  std::map<int64_t, std::vector<uint32_t>> holders;
  for (uint32_t member = ranks; member-- > 0;) {
    int64_t shard = has.of(member);
    if (shard == wants.of(member)) {
      sources[member] = member;
    } else {
      holders[shard].push_back(member);
    }
  }
  for (uint32_t member = 0; member < ranks; ++member) {
    if (sources[member] == ranks) {
      std::vector<uint32_t> &left = holders[wants.of(member)];
      sources[member] = left.back();
      left.pop_back();
    }
  }
  return sources;
}

} // namespace weft::planner
