//===- SimulatedRanks.h - what ranks hold, elementwise --------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ranks that hold shards of a matrix, and collectives between them as their definitions
// say: an independent oracle for steps, that knows nothing of how layouts change. What a
// rank holds of an element is the set of terms that were added up to it. The terms of a
// pending value are numbered by the coordinates on the pending axes.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_UNITTESTS_PLANNER_SIMULATEDRANKS_H
#define WEFT_UNITTESTS_PLANNER_SIMULATEDRANKS_H

#include "weft/Planner/Reshard.h"

#include <optional>
#include <set>

namespace weft::planner {

/// One element of the whole matrix, and which of its terms.
struct Cell {
  int64_t row = -1, column = -1;
  /// Coordinates on all axes of the mesh, those that are not pending 0. Several after a sum.
  std::multiset<std::vector<int64_t>> terms;
  bool operator==(const Cell &) const = default;
};

/// A rank's shard, row by row.
using Shard = std::vector<std::vector<Cell>>;

/// Each rank's shard, ranks numbered with the last axis of the mesh fastest.
using Ranks = std::vector<Shard>;

/// What ranks hold of a matrix of `shape` that lies as `layout`, where it is `whole` for all
/// axes of `terms` that `layout` does not name as pending: the sum of all their terms.
Ranks hold(const std::vector<int64_t> &mesh, const std::vector<int64_t> &shape,
           const Layout &layout, const Axes &terms);

/// `ranks` after a step; nothing if shards do not divide. Of `step` kind, axes and dimensions
/// count, and for a permute the layouts.
std::optional<Ranks> perform(const std::vector<int64_t> &mesh, const Ranks &ranks,
                             const Layout &from, const Step &step);

} // namespace weft::planner

#endif // WEFT_UNITTESTS_PLANNER_SIMULATEDRANKS_H
