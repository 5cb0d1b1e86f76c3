//===- PricePipeline.h - prices of a planned module's stages --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_PLAN_PRICEPIPELINE_H
#define WEFT_LIB_PIPELINE_PLAN_PRICEPIPELINE_H

#include "PlannedSeconds.h"

#include "weft/Pipeline/Plan/PipelinePrice.h"

namespace weft {

/// Prices the chunks and stages of `step`, the root of a planned module; returns nothing for one
/// without stages.
PipelinePrice pricePipeline(mlir::func::FuncOp step, PlannedSeconds &planned);

} // namespace weft

#endif // WEFT_LIB_PIPELINE_PLAN_PRICEPIPELINE_H
