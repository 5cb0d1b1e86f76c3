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

/// Tables of the costs of reshards, for all problems on one mesh. Computes each table once.
class ReshardTables {
public:
  /// Costs are seconds on `machine` or, if it is null, bytes sent. Both arguments must outlive the
  /// tables.
  ReshardTables(LayoutSpaces &spaces, const cost::Predictor *machine)
      : spaces(spaces), machine(machine), prices(spaces.getMesh().getSizes(), machine) {}

  /// Returns the table between the first `count` layouts of a value of `type`, the type of the
  /// whole tensor, which may be pending by `reduction`. The table lives as long as this object.
  const planner::Table &of(mlir::RankedTensorType type, ReductionKind reduction, uint32_t count);

  LayoutSpaces &spaces;
  const cost::Predictor *const machine;
  planner::Prices prices;

private:
  planner::Table make(mlir::RankedTensorType type, ReductionKind reduction, uint32_t count);

  std::map<std::tuple<const void *, ReductionKind, uint32_t>, planner::Table> known;
};

} // namespace weft

#endif // WEFT_LIB_PIPELINE_PLAN_RESHARDTABLES_H
