//===- CheckModule.h - whether a module suits its descriptions ------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_DRIVER_CHECKMODULE_H
#define WEFT_LIB_DRIVER_CHECKMODULE_H

#include "weft/Description/Plan.h"
#include "weft/Description/Recipe.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace weft {

/// Returns a sentence about an axis of `plan` that splits no dimension of an imported graph
/// (legal_r1); empty if each axis splits one.
std::string idleAxisOf(mlir::ModuleOp module, const desc::PlanSpec &plan);

/// Returns how a module that was read from the file `input` differs from the recipe and the plan:
/// in sizes, in the activations that backward recomputes, or in its mesh; empty if it does not.
std::string mismatchOf(mlir::ModuleOp module, const std::string &input,
                       const desc::RecipeSpec &recipe, const desc::PlanSpec &plan);

} // namespace weft

#endif // WEFT_LIB_DRIVER_CHECKMODULE_H
