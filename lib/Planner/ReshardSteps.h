//===- ReshardSteps.h - the steps that lead away from a layout ------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PLANNER_RESHARDSTEPS_H
#define WEFT_LIB_PLANNER_RESHARDSTEPS_H

#include "weft/Planner/Reshard.h"

namespace weft::planner {

/// Ranks of a group over `axes`.
int64_t ranksOver(const std::vector<int64_t> &mesh, const Axes &axes);

/// Bytes of one rank's shard of a value that lies as `layout`, as a step of `kind` sends it.
double operandBytes(const ReshardProblem &problem, const Layout &layout, StepKind kind);

/// The edges of the graph of layouts.
class ReshardSteps {
public:
  /// On the way between two layouts of `problem`. Also axes that both begin a dimension with may
  /// move meanwhile: shards that change places first may be gathered over faster links.
  static ReshardSteps between(const ReshardProblem &problem);
  /// On any way of reduced values, and of pending ones that are not made pending further.
  static ReshardSteps anywhere(const ReshardProblem &problem);

  using Visit = std::function<void(Step)>;
  void forEach(const Layout &layout, const Visit &visit) const;

private:
  explicit ReshardSteps(const ReshardProblem &problem) : problem(problem) {}

  void reductions(const Layout &layout, const Visit &visit) const;
  void gathers(const Layout &layout, const Visit &visit) const;
  void exchanges(const Layout &layout, const Visit &visit) const;
  void slices(const Layout &layout, const Visit &visit) const;
  void partial(const Layout &layout, const Visit &visit) const;
  /// All layouts of as many shards in every dimension, with other axes or in another order.
  void permutes(const Layout &layout, const Visit &visit) const;
  void refill(const Layout &layout, Layout &to, size_t dim, const Axes &pool,
              const Visit &visit) const;
  /// The axes that do not stand in the same place in both, ascending.
  Axes changed(const Layout &a, const Layout &b) const;
  /// Axes that neither cut nor are pending.
  Axes replicating(const Layout &layout) const;
  /// The last axes of `dim`, in every number, and the layout without them.
  void forEachSuffix(const Layout &layout, uint32_t dim,
                     const std::function<void(const Axes &, const Layout &)> &visit) const;
  /// `layout` with `dim` cut by `axes`, where that gives equal shards.
  void cut(StepKind kind, const Layout &layout, uint32_t dim, const Axes &axes,
           const Visit &visit) const;

  const ReshardProblem &problem;
  /// What is pending at the end of the way.
  Axes pendingAtEnd;
};

} // namespace weft::planner

#endif // WEFT_LIB_PLANNER_RESHARDSTEPS_H
