//===- ReviewPlan.h - everything that speaks against a plan ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One answer on a plan, ours or anybody's, before anything is compiled: each rule between
// model, recipe, machine and plan that it violates, all of them at once, by the numbers of
// docs/Descriptions.md, and what it will cost that could be had for less. It looks at
// dimensions and axes by their sizes; no strategy has a name here.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PLANNER_REVIEWPLAN_H
#define WEFT_PLANNER_REVIEWPLAN_H

#include "weft/Description/Machine.h"
#include "weft/Description/Model.h"
#include "weft/Description/Plan.h"
#include "weft/Description/Recipe.h"

#include <cstdint>
#include <optional>

namespace weft::planner {

/// What somebody wants of a plan beside what the descriptions say. Nothing is asked by what is
/// missing.
struct PlanRequest {
  /// Ranks that the program shall have.
  std::optional<int64_t> ranks;
  /// Samples that one group of ranks which share them takes at a time, and how many times in a
  /// step. They are asked together.
  std::optional<int64_t> microBatch, accumulation;
};

struct PlanReview {
  /// Rules that are violated (together_r*, legal_r*): no program can be made of the plan.
  desc::Diagnostics errors;
  /// What is allowed and dear (legal_r8, legal_r9).
  desc::Diagnostics warnings;
};

/// Lists all that is wrong and all that is dear; both empty for a good plan. Keeps no state: any
/// number of threads may call it.
PlanReview reviewPlan(const desc::ModelSpec &model, const desc::RecipeSpec &recipe,
                      const desc::MachineSpec &machine, const desc::PlanSpec &plan,
                      const PlanRequest &request = {});

} // namespace weft::planner

#endif // WEFT_PLANNER_REVIEWPLAN_H
