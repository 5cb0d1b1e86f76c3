//===- PipelinePrice.h - what actions of a pipeline take ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The time and the memory of each action of a pipeline as a planner may ask for them: from the
// planned module, before it has been partitioned and scheduled, so for any schedule without a
// table. Ops and collectives are priced as the search prices them, each by itself; the table's
// fused kernels and collectives beside computation take less.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PIPELINE_PLAN_PIPELINEPRICE_H
#define WEFT_PIPELINE_PLAN_PIPELINEPRICE_H

#include "weft/Description/StageOrder.h"

#include <cstdint>
#include <variant>
#include <vector>

namespace weft {

/// What one rank of a stage does and holds for one micro-batch, in one direction.
struct ActionPrice {
  double seconds = 0;
  /// The most bytes that values of the action alone have at an instant.
  double scratchBytes = 0;
};

struct ChunkPrice {
  int64_t stage = 0;
  ActionPrice forward, backward;
  /// What forward gets and makes that backward needs: it is held from the beginning of the one to
  /// the end of the other.
  double keptBytes = 0;
  /// The two parts of backward, if it is cut: gradients of inputs and those of weights.
  ActionPrice inputGradients = {}, weightGradients = {};
  /// What the second part needs of forward and of the first: it is held until its end.
  double keptForWeightsBytes = 0;
};

struct StagePrice {
  /// The time of what is done once a step.
  double onceSeconds = 0;
  /// Variables, and values that all micro-batches use or add to.
  double heldBytes = 0;
};

/// Empty for a step without stages.
struct PipelinePrice {
  std::vector<ChunkPrice> chunks;
  std::vector<StagePrice> stages;

  /// Gathers and reductions cost nothing here: they are among what is done once a step.
  ActionPrice of(const desc::StageAction &action) const;
};

/// A step in the order of a schedule.
struct PipelineEstimate {
  double seconds = 0;
  /// The share of all stages' time in which they wait for others, transfers taking none.
  double bubble = 0;
  /// Of each stage: the most bytes on a rank while micro-batches are in flight.
  std::vector<double> peakBytes;
};

/// Simulates a schedule of the chunks. Fails as `desc::simulate` does. REQUIRES: the schedule has
/// the chunks of `price`, in their stages.
std::variant<PipelineEstimate, desc::ScheduleFault>
estimatePipeline(const PipelinePrice &price, const desc::StageSchedule &schedule,
                 int64_t microBatches);

} // namespace weft

#endif // WEFT_PIPELINE_PLAN_PIPELINEPRICE_H
