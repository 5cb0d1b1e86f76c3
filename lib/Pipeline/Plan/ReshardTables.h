//===- ReshardTables.h - what it takes from each layout to each -----------===//
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

/// The tables of all problems on one mesh; each is made once.
class ReshardTables {
public:
  /// In seconds on `machine`, or in bytes without one. Both arguments must outlive this.
  ReshardTables(LayoutSpaces &spaces, const cost::Predictor *machine)
      : spaces(spaces), machine(machine), prices(spaces.getMesh().getSizes(), machine) {}

  /// Between the first `count` layouts of a value of `type`, whole, which may be pending by
  /// `reduction`. Valid as long as this is.
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
