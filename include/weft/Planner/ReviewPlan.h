//===- ReviewPlan.h - errors and warnings of a plan -----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reviews a plan before compilation, whether a search or a user wrote it. Reports all violated
// rules between model, recipe, machine and plan at once, by the numbers of docs/Descriptions.md,
// and warns of avoidable costs. The review compares sizes of dimensions and axes only; it
// recognizes no strategy by name, and warns of an axis named pp.
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

/// A user's requests of a plan that are in no description. An empty field requests nothing.
struct PlanRequest {
  /// Ranks of the program.
  std::optional<int64_t> ranks;
  /// Samples in a micro-batch of one data-parallel group of ranks, and micro-batches in a step. Set
  /// both or neither.
  std::optional<int64_t> microBatch, accumulation;
  /// True if the compiler may pad further for aligned rows of matmuls, as for devices.
  bool alignsRows = false;
};

struct PlanReview {
  /// Violated rules (together_r*, legal_r*), which no program can be compiled with.
  desc::Diagnostics errors;
  /// What is allowed, but costs more or does less than it seems to (legal_r5, legal_r8, legal_r9,
  /// legal_r12, legal_r13, together_r10).
  desc::Diagnostics warnings;
};

/// Returns all errors and warnings; both are empty for a good plan. Keeps no state: any number of
/// threads may call it.
PlanReview reviewPlan(const desc::ModelSpec &model, const desc::RecipeSpec &recipe,
                      const desc::MachineSpec &machine, const desc::PlanSpec &plan,
                      const PlanRequest &request = {});

} // namespace weft::planner

#endif // WEFT_PLANNER_REVIEWPLAN_H
