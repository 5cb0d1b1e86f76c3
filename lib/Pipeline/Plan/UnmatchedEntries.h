//===- UnmatchedEntries.h - entries of a plan that match nothing ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_PLAN_UNMATCHEDENTRIES_H
#define WEFT_LIB_PIPELINE_PLAN_UNMATCHEDENTRIES_H

#include "OpPins.h"

namespace weft {

/// Fails if an entry that has a place in a file matches no variable and no op of `module` with its
/// dimension (legal_r11), and names what is nearest. Entries of pins may match nothing: they are
/// the same for all models.
llvm::LogicalResult checkMatches(mlir::ModuleOp module, const desc::PlanSpec &plan,
                                 const OpNames &names, Dimensions &dimensions);

/// Returns the name of a variable for a plan's shardings: an optimizer state has the name of its
/// parameter.
llvm::StringRef getPlanName(VariableOp variable);

} // namespace weft

#endif // WEFT_LIB_PIPELINE_PLAN_UNMATCHEDENTRIES_H
