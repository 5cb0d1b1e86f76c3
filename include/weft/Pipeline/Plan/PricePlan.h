//===- PricePlan.h - the cost of a planned module -------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Computes the cost of a step from a planned module alone: from the costs that ops state, from the
// shardings in types, and from the paths of reshards. It shares no code with the tables of the
// search, so that each checks the other: if the search's sums differ from those of the module that
// it wrote, one of the two has a bug. The ops' verifiers and verify-plan check that the module is
// legal.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PIPELINE_PLAN_PRICEPLAN_H
#define WEFT_PIPELINE_PLAN_PRICEPLAN_H

#include "weft/Pipeline/Plan/PipelinePrice.h"

#include <map>
#include <string>

namespace weft {

/// The cost of one step on one rank, of several pipeline stages in the mean.
struct PlanPrice {
  /// Seconds on a machine; without a machine, bytes sent.
  double seconds = 0;
  /// The parts of `seconds`: of computing, by the kind of op ("contract"), and of collectives, by
  /// the axes of the mesh that they go over ("tp", or "dp,tp" for both at once).
  std::map<std::string, double> computing, sending;
  /// Bytes of variables by their roles ("parameter"), and of values that are computed before the
  /// peak point and used after it.
  std::map<std::string, double> variables;
  double saved = 0;
  /// The same by actions and stages, not in the mean; empty without stages.
  PipelinePrice pipeline;

  /// Returns the bytes of all variables and of saved values.
  double bytes() const;
};

} // namespace weft

#endif // WEFT_PIPELINE_PLAN_PRICEPLAN_H
