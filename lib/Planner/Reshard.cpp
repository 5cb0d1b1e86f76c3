//===- Reshard.cpp - the cheapest way from one sharding to another --------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Planner/Reshard.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

namespace weft::planner {

namespace {

bool contains(const Axes &axes, uint32_t axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

int64_t ranksOver(const std::vector<int64_t> &mesh, const Axes &axes) {
  return std::accumulate(axes.begin(), axes.end(), int64_t(1),
                         [&](int64_t product, uint32_t axis) { return product * mesh[axis]; });
}

/// Calls `visit` with every ordered choice of one or more of `axes`.
void forEachArrangement(const Axes &axes, const std::function<void(const Axes &)> &visit) {
  Axes chosen;
  std::function<void()> extend = [&] {
    for (uint32_t axis : axes) {
      if (!contains(chosen, axis)) {
        chosen.push_back(axis);
        visit(chosen);
        extend();
        chosen.pop_back();
      }
    }
  };
  extend();
}

/// The steps that lead away from a layout.
class Neighbors {
public:
  explicit Neighbors(const ReshardProblem &problem) : problem(problem) {
    for (size_t dim = 0; dim < problem.shape.size(); ++dim) {
      const Axes &from = problem.from.dims[dim], &to = problem.to.dims[dim];
      auto end = std::mismatch(from.begin(), from.end(), to.begin(), to.end()).first;
      kept.push_back(size_t(end - from.begin()));
    }
  }

  using Visit = std::function<void(Step)>;

  void forEach(const Layout &layout, const Visit &visit) const {
    reductions(layout, visit);
    gathers(layout, visit);
    exchanges(layout, visit);
    permutes(layout, visit);
    slices(layout, visit);
    partial(layout, visit);
  }

private:
  void reductions(const Layout &layout, const Visit &visit) const {
    Axes pending;
    for (uint32_t axis : layout.unreduced) {
      if (!contains(problem.to.unreduced, axis)) {
        pending.push_back(axis);
      }
    }
    forEachArrangement(pending, [&](const Axes &axes) {
      Layout left = layout;
      std::erase_if(left.unreduced, [&](uint32_t axis) { return contains(axes, axis); });
      if (std::is_sorted(axes.begin(), axes.end())) {
        visit({StepKind::AllReduce, axes, 0, 0, left});
      }
      for (uint32_t dim = 0; problem.scatters && dim < layout.dims.size(); ++dim) {
        cut(StepKind::ReduceScatter, left, dim, axes, visit);
      }
    });
  }

  void gathers(const Layout &layout, const Visit &visit) const {
    for (uint32_t dim = 0; dim < layout.dims.size(); ++dim) {
      forEachSuffix(layout, dim, [&](const Axes &axes, const Layout &left) {
        visit({StepKind::AllGather, axes, dim, 0, left});
      });
    }
  }

  void exchanges(const Layout &layout, const Visit &visit) const {
    for (uint32_t dim = 0; dim < layout.dims.size(); ++dim) {
      forEachSuffix(layout, dim, [&](const Axes &axes, const Layout &left) {
        for (uint32_t other = 0; other < layout.dims.size(); ++other) {
          if (other != dim) {
            cut(StepKind::AllToAll, left, other, axes,
                [&](Step step) { visit({step.kind, axes, dim, other, std::move(step.to)}); });
          }
        }
      });
    }
  }

  void slices(const Layout &layout, const Visit &visit) const {
    forEachArrangement(replicating(layout), [&](const Axes &axes) {
      for (uint32_t dim = 0; dim < layout.dims.size(); ++dim) {
        cut(StepKind::Slice, layout, dim, axes, visit);
      }
    });
  }

  void partial(const Layout &layout, const Visit &visit) const {
    Axes coming, replicates = replicating(layout);
    for (uint32_t axis : problem.to.unreduced) {
      if (!contains(layout.unreduced, axis)) {
        coming.push_back(axis);
      }
    }
    bool free = std::all_of(coming.begin(), coming.end(),
                            [&](uint32_t axis) { return contains(replicates, axis); });
    if (!coming.empty() && free) {
      Layout to = layout;
      to.unreduced.insert(to.unreduced.end(), coming.begin(), coming.end());
      std::sort(to.unreduced.begin(), to.unreduced.end());
      visit({StepKind::Partial, coming, 0, 0, to});
    }
  }

  /// All layouts of as many pieces in every dimension, with other axes or in another order.
  void permutes(const Layout &layout, const Visit &visit) const {
    Axes pool = replicating(layout);
    Layout to = layout;
    for (size_t dim = 0; dim < layout.dims.size(); ++dim) {
      pool.insert(pool.end(), layout.dims[dim].begin() + kept[dim], layout.dims[dim].end());
      to.dims[dim].resize(kept[dim]);
    }
    std::sort(pool.begin(), pool.end());
    refill(layout, to, 0, pool, visit);
  }

  void refill(const Layout &layout, Layout &to, size_t dim, const Axes &pool,
              const Visit &visit) const {
    if (dim == layout.dims.size()) {
      if (to != layout) {
        visit({StepKind::Permute, changed(layout, to), 0, 0, to});
      }
      return;
    }
    int64_t pieces =
        ranksOver(problem.mesh, layout.dims[dim]) / ranksOver(problem.mesh, to.dims[dim]);
    if (pieces == 1) {
      return refill(layout, to, dim + 1, pool, visit);
    }
    Axes before = to.dims[dim];
    forEachArrangement(pool, [&](const Axes &axes) {
      if (ranksOver(problem.mesh, axes) == pieces) {
        Axes left = pool;
        std::erase_if(left, [&](uint32_t axis) { return contains(axes, axis); });
        to.dims[dim].insert(to.dims[dim].end(), axes.begin(), axes.end());
        refill(layout, to, dim + 1, left, visit);
        to.dims[dim] = before;
      }
    });
  }

  /// The axes that do not stand in the same place in both, ascending.
  Axes changed(const Layout &a, const Layout &b) const {
    auto place = [&](const Layout &layout, uint32_t axis) {
      for (size_t dim = 0; dim < layout.dims.size(); ++dim) {
        int64_t minor = 1; // Pieces that the axes behind it make.
        for (auto at = layout.dims[dim].rbegin(); at != layout.dims[dim].rend(); ++at) {
          if (*at == axis) {
            return std::pair(dim, minor);
          }
          minor *= problem.mesh[*at];
        }
      }
      return std::pair(layout.dims.size(), int64_t(0));
    };
    Axes axes;
    for (uint32_t axis = 0; axis < problem.mesh.size(); ++axis) {
      if (place(a, axis) != place(b, axis)) {
        axes.push_back(axis);
      }
    }
    return axes;
  }

  /// Axes that neither cut nor are pending.
  Axes replicating(const Layout &layout) const {
    Axes axes;
    for (uint32_t axis = 0; axis < problem.mesh.size(); ++axis) {
      bool cuts = std::any_of(layout.dims.begin(), layout.dims.end(),
                              [&](const Axes &dim) { return contains(dim, axis); });
      if (!cuts && !contains(layout.unreduced, axis)) {
        axes.push_back(axis);
      }
    }
    return axes;
  }

  /// The last axes of `dim`, in every number, and the layout without them. What both ends of the
  /// way begin with stays: whatever moved it could as well leave it, with smaller groups.
  void forEachSuffix(const Layout &layout, uint32_t dim,
                     const std::function<void(const Axes &, const Layout &)> &visit) const {
    const Axes &all = layout.dims[dim];
    Layout left = layout;
    for (size_t begin = all.size(); begin-- > kept[dim];) {
      left.dims[dim].resize(begin);
      visit(Axes(all.begin() + begin, all.end()), left);
    }
  }

  /// `layout` with `dim` cut by `axes`, where that gives equal pieces.
  void cut(StepKind kind, const Layout &layout, uint32_t dim, const Axes &axes,
           const Visit &visit) const {
    Layout to = layout;
    to.dims[dim].insert(to.dims[dim].end(), axes.begin(), axes.end());
    if (problem.shape[dim] % ranksOver(problem.mesh, to.dims[dim]) == 0) {
      visit({kind, axes, dim, 0, std::move(to)});
    }
  }

  const ReshardProblem &problem;
  /// For each dimension, the number of axes that both ends begin with.
  std::vector<size_t> kept;
};

/// Cheaper first, then shorter, then along outer dimensions, whose pieces lie together in memory.
struct Length {
  double cost = 0;
  size_t steps = 0, dims = 0;
  auto operator<=>(const Length &) const = default;
};

class Search {
public:
  Search(const ReshardProblem &problem, const Price &price)
      : problem(problem), price(price), neighbors(problem) {}

  Way run() {
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
    return {}; // Unreachable: gathers lead to the whole value, and slices everywhere from there.
  }

private:
  struct Arrival {
    Length length;
    Layout before;
    Step step;
  };

  void relax(const Layout &layout, Length length, Step step) {
    length.cost += price(step.kind, step.axes, operandBytes(layout, step.kind));
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

  double operandBytes(const Layout &layout, StepKind kind) const {
    double elements = 1;
    for (size_t dim = 0; dim < problem.shape.size(); ++dim) {
      elements *= double(problem.shape[dim] / ranksOver(problem.mesh, layout.dims[dim]));
    }
    bool reduces = kind == StepKind::AllReduce || kind == StepKind::ReduceScatter;
    return elements * (reduces ? problem.reducedBytes : problem.elementBytes);
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
  const Neighbors neighbors;
  std::map<Layout, Arrival> reached;
  std::set<std::pair<Length, Layout>> open;
};

/// Numbers the pieces that the ranks of a group hold of a tensor that lies as `layout`.
class Pieces {
public:
  Pieces(const std::vector<int64_t> &mesh, const Axes &group, const Layout &layout)
      : mesh(mesh), group(group), layout(layout) {}

  /// The piece of rank `member` of the group; all other axes at their first rank.
  int64_t of(int64_t member) const {
    std::vector<int64_t> coordinates(mesh.size(), 0);
    for (size_t at = group.size(); at-- > 0;) {
      coordinates[group[at]] = member % mesh[group[at]];
      member /= mesh[group[at]];
    }
    int64_t piece = 0;
    for (const Axes &dim : layout.dims) {
      for (uint32_t axis : dim) {
        piece = piece * mesh[axis] + coordinates[axis];
      }
    }
    return piece;
  }

private:
  const std::vector<int64_t> &mesh;
  const Axes &group;
  const Layout &layout;
};

} // namespace

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

Way cheapestWay(const ReshardProblem &problem, const Price &price) {
  return Search(problem, price).run();
}

std::vector<uint32_t> permutationSources(const std::vector<int64_t> &mesh, const Axes &axes,
                                         const Layout &from, const Layout &to) {
  Pieces has(mesh, axes, from), wants(mesh, axes, to);
  uint32_t ranks = uint32_t(ranksOver(mesh, axes));
  std::vector<uint32_t> sources(ranks, ranks);
  std::map<int64_t, std::vector<uint32_t>> holders;
  for (uint32_t member = ranks; member-- > 0;) {
    int64_t piece = has.of(member);
    if (piece == wants.of(member)) {
      sources[member] = member;
    } else {
      holders[piece].push_back(member);
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
