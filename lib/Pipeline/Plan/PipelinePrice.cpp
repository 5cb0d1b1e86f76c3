//===- PipelinePrice.cpp - what a schedule of priced actions takes --------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Pipeline/Plan/PipelinePrice.h"

#include <algorithm>

using namespace weft;
using desc::StageAction;

ActionPrice PipelinePrice::of(const StageAction &action) const {
  const ChunkPrice &chunk = chunks[size_t(action.chunk)];
  switch (action.kind) {
  case StageAction::Kind::Forward:
    return chunk.forward;
  case StageAction::Kind::Backward:
    return chunk.backward;
  case StageAction::Kind::InputGradients:
    return chunk.inputGradients;
  case StageAction::Kind::WeightGradients:
    return chunk.weightGradients;
  default:
    return {};
  }
}

/// Returns the most bytes that a stage has while it does `actions`, one after another.
static double peakOf(const PipelinePrice &price, double held,
                     const std::vector<StageAction> &actions) {
  double inFlight = 0, peak = held;
  for (const StageAction &action : actions) {
    const ChunkPrice &chunk = price.chunks[size_t(action.chunk)];
    const bool isFirstPart = action.kind == StageAction::Kind::InputGradients;
    inFlight += action.kind == StageAction::Kind::Forward ? chunk.keptBytes : 0;
    peak = std::max(peak, held + inFlight + price.of(action).scratchBytes);
    inFlight += isFirstPart ? chunk.keptForWeightsBytes : 0;
    inFlight -= action.givesInputGradients() ? chunk.keptBytes : 0;
    inFlight -= action.kind == StageAction::Kind::WeightGradients ? chunk.keptForWeightsBytes : 0;
  }
  return peak;
}

std::variant<PipelineEstimate, desc::ScheduleFault>
weft::estimatePipeline(const PipelinePrice &price, const desc::StageSchedule &schedule,
                       int64_t microBatches) {
  constexpr double kLeast = 1e-12; // Times of actions must be positive.
  auto simulated = desc::simulate(schedule, microBatches, [&](const StageAction &action) {
    return std::max(price.of(action).seconds, kLeast);
  });
  if (auto *fault = std::get_if<desc::ScheduleFault>(&simulated)) {
    return *fault;
  }
  std::vector<double> ends(schedule.size()), busy(schedule.size());
  for (const desc::TimedAction &timed : std::get<desc::Course>(simulated).actions) {
    auto stage = size_t(timed.stage);
    ends[stage] = std::max(ends[stage], timed.end);
    busy[stage] += timed.end - timed.begin;
  }
  PipelineEstimate estimate;
  double worked = 0;
  for (size_t stage = 0; stage < schedule.size(); ++stage) {
    const StagePrice &own = price.stages[stage];
    estimate.seconds = std::max(estimate.seconds, ends[stage] + own.onceSeconds);
    worked += busy[stage] + own.onceSeconds;
    estimate.peakBytes.push_back(peakOf(price, own.heldBytes, schedule[stage]));
  }
  estimate.bubble = 1 - worked / (estimate.seconds * double(schedule.size()));
  return estimate;
}
