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

/// Returns the number of ranks of a group over `axes`.
int64_t ranksOver(const std::vector<int64_t> &mesh, const Axes &axes);

/// Returns the bytes of one rank's shard of a value in `layout`, in the type that a step of `kind`
/// sends.
double operandBytes(const ReshardProblem &problem, const Layout &layout, StepKind kind);

/// The edges of the graph of layouts.
class ReshardSteps {
public:
  /// Returns the steps of paths between the two layouts of `problem`. Steps may also move axes that
  /// stay where they are in the end: permuted shards may be gathered over faster links.
  static ReshardSteps between(const ReshardProblem &problem);
  /// Returns the steps of any paths, except those that make a value pending.
  static ReshardSteps anywhere(const ReshardProblem &problem);

  using Visit = std::function<void(Step)>;
  void forEach(const Layout &layout, const Visit &visit) const;

private:
  explicit ReshardSteps(const ReshardProblem &problem) : problem(problem) {}

  void reductions(const Layout &layout, const Visit &visit) const;
  void gathers(const Layout &layout, const Visit &visit) const;
  void exchanges(const Layout &layout, const Visit &visit) const;
  void slices(const Layout &layout, const Visit &visit) const;
  /// Visits the step that makes the value pending, if the path ends with it, as the tables of
  /// LayoutSpace have it. Earlier it might cost less, as its operand might be smaller.
  void partial(const Layout &layout, const Visit &visit) const;
  /// Visits permutes to all layouts with equally many shards in every dimension.
  void permutes(const Layout &layout, const Visit &visit) const;
  void refill(const Layout &layout, Layout &to, size_t dim, const Axes &pool,
              const Visit &visit) const;
  /// Returns the axes that have different places in `a` and `b`, ascending.
  Axes changed(const Layout &a, const Layout &b) const;
  /// Returns the axes that neither cut a dimension nor are pending.
  Axes replicating(const Layout &layout) const;
  /// Visits each suffix of the axes of `dim`, with the layout without these axes.
  void forEachSuffix(const Layout &layout, uint32_t dim,
                     const std::function<void(const Axes &, const Layout &)> &visit) const;
  /// Visits the step that cuts `dim` of `layout` by `axes`, if that gives equal shards.
  void cut(StepKind kind, const Layout &layout, uint32_t dim, const Axes &axes,
           const Visit &visit) const;

  const ReshardProblem &problem;
  /// The layout at the end of the path; empty for any paths.
  Layout end;
};

} // namespace weft::planner

#endif // WEFT_LIB_PLANNER_RESHARDSTEPS_H
