//===- TakeStage.h - the module of one pipeline stage --------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PIPELINE_SCHEDULE_TAKESTAGE_H
#define WEFT_PIPELINE_SCHEDULE_TAKESTAGE_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <vector>

namespace weft {

/// Returns a module for each stage, which take-stage says the contents of. REQUIRES: `module` has
/// several stages.
std::vector<mlir::OwningOpRef<mlir::ModuleOp>> takeStages(mlir::ModuleOp module);

} // namespace weft

#endif // WEFT_PIPELINE_SCHEDULE_TAKESTAGE_H
