//===- ReshardSteps.cpp - the steps that lead away from a layout ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ReshardSteps.h"

#include <algorithm>
#include <iterator>
#include <numeric>

namespace weft::planner {

static bool contains(const Axes &axes, uint32_t axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

int64_t ranksOver(const std::vector<int64_t> &mesh, const Axes &axes) {
  return std::accumulate(axes.begin(), axes.end(), int64_t(1),
                         [&](int64_t product, uint32_t axis) { return product * mesh[axis]; });
}

double operandBytes(const ReshardProblem &problem, const Layout &layout, StepKind kind) {
  double elements = 1;
  for (size_t dim = 0; dim < problem.shape.size(); ++dim) {
    elements *= double(problem.shape[dim] / ranksOver(problem.mesh, layout.dims[dim]));
  }
  return elements * (reduces(kind) ? problem.reducedBytes : problem.elementBytes);
}

/// Calls `visit` with every ordered choice of one or more of `axes`.
static void forEachArrangement(const Axes &axes, const std::function<void(const Axes &)> &visit) {
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

ReshardSteps ReshardSteps::between(const ReshardProblem &problem) {
  ReshardSteps steps = anywhere(problem);
  steps.end = problem.to;
  return steps;
}

ReshardSteps ReshardSteps::anywhere(const ReshardProblem &problem) { return ReshardSteps(problem); }

void ReshardSteps::forEach(const Layout &layout, const Visit &visit) const {
  reductions(layout, visit);
  gathers(layout, visit);
  exchanges(layout, visit);
  permutes(layout, visit);
  slices(layout, visit);
  partial(layout, visit);
}

void ReshardSteps::reductions(const Layout &layout, const Visit &visit) const {
  Axes pending;
  for (uint32_t axis : layout.unreduced) {
    // Only a sum can become pending again.
    if (problem.isSum || !contains(end.unreduced, axis)) {
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

void ReshardSteps::gathers(const Layout &layout, const Visit &visit) const {
  for (uint32_t dim = 0; dim < layout.dims.size(); ++dim) {
    forEachSuffix(layout, dim, [&](const Axes &axes, const Layout &left) {
      visit({StepKind::AllGather, axes, dim, 0, left});
    });
  }
}

void ReshardSteps::exchanges(const Layout &layout, const Visit &visit) const {
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

void ReshardSteps::slices(const Layout &layout, const Visit &visit) const {
  forEachArrangement(replicating(layout), [&](const Axes &axes) {
    for (uint32_t dim = 0; dim < layout.dims.size(); ++dim) {
      cut(StepKind::Slice, layout, dim, axes, visit);
    }
  });
}

void ReshardSteps::partial(const Layout &layout, const Visit &visit) const {
  Axes coming;
  std::set_difference(end.unreduced.begin(), end.unreduced.end(), layout.unreduced.begin(),
                      layout.unreduced.end(), std::back_inserter(coming));
  bool isLast =
      layout.dims == end.dims && layout.unreduced.size() + coming.size() == end.unreduced.size();
  if (isLast && !coming.empty()) {
    visit({StepKind::Partial, coming, 0, 0, end});
  }
}

void ReshardSteps::permutes(const Layout &layout, const Visit &visit) const {
  Axes pool = replicating(layout);
  Layout to = layout;
  for (size_t dim = 0; dim < layout.dims.size(); ++dim) {
    pool.insert(pool.end(), layout.dims[dim].begin(), layout.dims[dim].end());
    to.dims[dim].clear();
  }
  std::sort(pool.begin(), pool.end());
  refill(layout, to, 0, pool, visit);
}

void ReshardSteps::refill(const Layout &layout, Layout &to, size_t dim, const Axes &pool,
                          const Visit &visit) const {
  if (dim == layout.dims.size()) {
    if (to != layout) {
      visit({StepKind::Permute, changed(layout, to), 0, 0, to});
    }
    return;
  }
  int64_t shards =
      ranksOver(problem.mesh, layout.dims[dim]) / ranksOver(problem.mesh, to.dims[dim]);
  if (shards == 1) {
    return refill(layout, to, dim + 1, pool, visit);
  }
  Axes before = to.dims[dim];
  forEachArrangement(pool, [&](const Axes &axes) {
    if (ranksOver(problem.mesh, axes) == shards) {
      Axes left = pool;
      std::erase_if(left, [&](uint32_t axis) { return contains(axes, axis); });
      to.dims[dim].insert(to.dims[dim].end(), axes.begin(), axes.end());
      refill(layout, to, dim + 1, left, visit);
      to.dims[dim] = before;
    }
  });
}

Axes ReshardSteps::changed(const Layout &a, const Layout &b) const {
  auto place = [&](const Layout &layout, uint32_t axis) {
    for (size_t dim = 0; dim < layout.dims.size(); ++dim) {
      int64_t minor = 1; // Shards by the later axes.
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

Axes ReshardSteps::replicating(const Layout &layout) const {
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

void ReshardSteps::forEachSuffix(
    const Layout &layout, uint32_t dim,
    const std::function<void(const Axes &, const Layout &)> &visit) const {
  const Axes &all = layout.dims[dim];
  Layout left = layout;
  for (size_t begin = all.size(); begin-- > 0;) {
    left.dims[dim].resize(begin);
    visit(Axes(all.begin() + begin, all.end()), left);
  }
}

void ReshardSteps::cut(StepKind kind, const Layout &layout, uint32_t dim, const Axes &axes,
                       const Visit &visit) const {
  Layout to = layout;
  to.dims[dim].insert(to.dims[dim].end(), axes.begin(), axes.end());
  if (problem.shape[dim] % ranksOver(problem.mesh, to.dims[dim]) == 0) {
    visit({kind, axes, dim, 0, std::move(to)});
  }
}

} // namespace weft::planner
