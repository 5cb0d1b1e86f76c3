//===- Pipeline.h - the pipeline of a plan, checked and printed -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_DESCRIPTION_PIPELINE_H
#define WEFT_LIB_DESCRIPTION_PIPELINE_H

#include "Fields.h"

#include "weft/Description/Plan.h"

#include "weft/plan.pb.h"

#include <string>

namespace weft::desc::detail {

/// The last layer that a model may have, by model_r4.
inline constexpr int64_t maximumLayer = (1 << 10) - 1;

/// Returns the number of chunks of each stage that the schedule is for; nothing if it is for any.
std::optional<int64_t> chunksOf(PipelineSchedule schedule);

/// Adds an error for each rule that the plan's `pipeline` violates, if it has one. `fields` are
/// those of the plan.
void checkPipeline(const proto::Plan &plan, Fields &fields);

/// Returns the plan's pipeline. REQUIRES: it violates no rule.
PipelineSpec resolvePipeline(const proto::Plan &plan, Fields &fields);

/// Prints a pipeline as a plan has it, without its field's name.
std::string textOf(const PipelineSpec &pipeline);

} // namespace weft::desc::detail

#endif // WEFT_LIB_DESCRIPTION_PIPELINE_H
