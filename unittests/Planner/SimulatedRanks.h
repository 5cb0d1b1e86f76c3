//===- SimulatedRanks.h - shards of ranks, elementwise --------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ranks that hold shards of a matrix, and collectives between them by their definitions:
// an independent oracle for the steps of reshards. An element on a rank is the set of
// terms of its sum. The terms of a pending value are numbered by the coordinates on the
// pending axes.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_UNITTESTS_PLANNER_SIMULATEDRANKS_H
#define WEFT_UNITTESTS_PLANNER_SIMULATEDRANKS_H

#include "weft/Planner/Reshard.h"

#include <optional>
#include <set>

namespace weft::planner {

/// One element of the whole matrix, and some of its terms.
struct Cell {
  int64_t row = -1, column = -1;
  /// Coordinates on all axes of the mesh, 0 on those that are not pending; several after a sum.
  std::multiset<std::vector<int64_t>> terms;
  bool operator==(const Cell &) const = default;
};

/// A rank's shard, row by row.
using Shard = std::vector<std::vector<Cell>>;

/// Each rank's shard, ranks numbered with the last axis of the mesh fastest.
using Ranks = std::vector<Shard>;

/// Returns the ranks' shards of a matrix of `shape` under `layout`. The matrix is a sum of terms
/// over the axes `terms`; over those that are not pending in `layout`, the sum is complete.
Ranks hold(const std::vector<int64_t> &mesh, const std::vector<int64_t> &shape,
           const Layout &layout, const Axes &terms);

/// Returns `ranks` after a step; nothing if a dimension does not divide into shards. Uses the kind,
/// axes and dimensions of `step`, and for a permute the layouts.
std::optional<Ranks> perform(const std::vector<int64_t> &mesh, const Ranks &ranks,
                             const Layout &from, const Step &step);

} // namespace weft::planner

#endif // WEFT_UNITTESTS_PLANNER_SIMULATEDRANKS_H
