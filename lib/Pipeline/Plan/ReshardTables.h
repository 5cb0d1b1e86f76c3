//===- ReshardTables.h - tables of costs of reshards ----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_PLAN_RESHARDTABLES_H
#define WEFT_LIB_PIPELINE_PLAN_RESHARDTABLES_H

#include "LayoutSpaces.h"

#include "weft/Planner/Prices.h"
#include "weft/Planner/Problem.h"

#include <map>

namespace weft {

/// The costs of reshards between the layouts that a value of one type may have. The last row and
/// the last column, infinite, are of all layouts that it may not have.
struct ReshardTable {
  planner::Table costs;
  /// For the number of each layout, its row and column.
  std::vector<uint32_t> places;

  std::vector<uint32_t> placesOf(std::vector<uint32_t> layouts) const {
    for (uint32_t &layout : layouts) {
      layout = places[layout];
    }
    return layouts;
  }
};

/// Tables of the costs of reshards, for all problems on one mesh. Computes each table once.
class ReshardTables {
public:
  /// Costs are seconds on `machine` or, if it is null, bytes sent. Both arguments must outlive the
  /// tables.
  ReshardTables(LayoutSpaces &spaces, const cost::Predictor *machine)
      : spaces(spaces), machine(machine), prices(spaces.getMesh().getSizes(), machine) {}

  /// Returns the table between the layouts that a search considers for a value of `type`, the type
  /// of the whole tensor, which may be pending by `reduction`. The table lives as long as this
  /// object.
  const ReshardTable &of(mlir::RankedTensorType type, ReductionKind reduction);

  LayoutSpaces &spaces;
  const cost::Predictor *const machine;
  planner::Prices prices;

private:
  ReshardTable make(mlir::RankedTensorType type, ReductionKind reduction,
                    llvm::ArrayRef<uint32_t> searched);

  /// By the number of layouts too, which grows as layouts are added.
  std::map<std::tuple<const void *, ReductionKind, size_t>, ReshardTable> known;
};

} // namespace weft

#endif // WEFT_LIB_PIPELINE_PLAN_RESHARDTABLES_H
