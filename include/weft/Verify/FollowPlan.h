//===- FollowPlan.h - shards one program like another ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `weft verify` runs a small model in place of a large one. A search for the small model would
// choose other shardings. So each op of the small program gets the sharding of its counterpart in
// the large program, and the same collectives and reshards.
//
// Counterparts have equal names and places in the model. The two modules may differ only in sizes,
// numbers and order of layers, precisions and sizes of mesh axes.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_VERIFY_FOLLOWPLAN_H
#define WEFT_VERIFY_FOLLOWPLAN_H

#include "weft/Description/Plan.h"

#include "mlir/IR/BuiltinOps.h"

#include <cstdint>
#include <vector>

namespace weft::verify {

/// Copies the shardings of `planned` to the types of `module`, and its collectives and reshards to
/// the functions of `module`. Layer i of `module` stands for layer `layers[i]` of `planned`;
/// `layers` is empty for a model without layers.
///
/// REQUIRES: `module` is as apply-plan leaves it, with a mesh of the same axes, and `planned` as
/// search-shardings or reshard-to-collectives leave it; both are of one context.
///
/// Fails, with a diagnostic, if an op of `module` has no counterpart in `planned`; `module` is then
/// unspecified.
llvm::LogicalResult followPlan(mlir::ModuleOp module, mlir::ModuleOp planned,
                               const std::vector<int64_t> &layers);

/// Gives `plan`, which has the axes of `planned` by other names, a home for each named dimension of
/// each variable of `module` but its inputs: the sharding of its counterpart in `planned`. It
/// replaces what homes of values say that `module` does not have: a weight that is rounded in
/// `planned` alone is stored like the weight, not like its rounded copy, whose home has its name.
///
/// REQUIRES: `planned` and `layers` as for followPlan. A variable without counterpart gets no home.
void addHomes(desc::PlanSpec &plan, mlir::ModuleOp module, mlir::ModuleOp planned,
              const std::vector<int64_t> &layers);

} // namespace weft::verify

#endif // WEFT_VERIFY_FOLLOWPLAN_H
