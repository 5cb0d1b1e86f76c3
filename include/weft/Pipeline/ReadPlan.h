//===- ReadPlan.h - the plan that passes are given --------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PIPELINE_READPLAN_H
#define WEFT_PIPELINE_READPLAN_H

#include "weft/Description/Plan.h"

#include "mlir/IR/BuiltinOps.h"

namespace weft {

/// Returns `written` if that is not null, else the plan of a pass's options: `plan` is its text or,
/// if that is empty, `pins` make it. Fails with errors of the pass named `pass`, at their places in
/// the text, or at the module, if the plan is not valid.
mlir::FailureOr<desc::PlanSpec> readPlan(mlir::ModuleOp module, llvm::StringRef pass,
                                         const std::string &plan,
                                         const std::vector<std::string> &pins,
                                         const desc::PlanSpec *written);

/// Returns the place of an entry of a plan, for errors: in its file, or in line 0 of "--pin".
mlir::Location placeOf(mlir::MLIRContext *context, const desc::Location &location);

/// Returns an entry as a plan has it, without its place.
std::string textOf(const desc::ShardingSpec &entry);

} // namespace weft

#endif // WEFT_PIPELINE_READPLAN_H
