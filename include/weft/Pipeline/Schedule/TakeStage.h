//===- TakeStage.h - the module of one pipeline stage --------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PIPELINE_SCHEDULE_TAKESTAGE_H
#define WEFT_PIPELINE_SCHEDULE_TAKESTAGE_H

#include "mlir/IR/BuiltinOps.h"

namespace weft {

/// Does what the pass take-stage says. REQUIRES: the module has several stages, and `stage` is one
/// of them.
void takeStage(mlir::ModuleOp module, int64_t stage);

} // namespace weft

#endif // WEFT_PIPELINE_SCHEDULE_TAKESTAGE_H
