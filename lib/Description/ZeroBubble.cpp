//===- ZeroBubble.cpp - schedules with backward in two parts --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Description/StageOrder.h"

#include <algorithm>
#include <array>

using namespace weft;
using namespace weft::desc;

using Kind = StageAction::Kind;

/// Returns the actions of a stage with one chunk that does forward of `ahead` more micro-batches
/// than gradients of inputs, and those of `late` more than gradients of weights, as long as there
/// are some.
static std::vector<StageAction> actionsOf(int64_t stage, int64_t microBatches, int64_t ahead,
                                          int64_t late) {
  std::vector<StageAction> actions;
  auto add = [&](Kind kind, int64_t microBatch) {
    if (microBatch >= 0 && microBatch < microBatches) {
      actions.push_back({stage, kind, microBatch});
    }
  };
  for (int64_t step = 0; step < microBatches + ahead + late; ++step) {
    add(Kind::Forward, step);
    if (stage == 0) {
      add(Kind::Backward, step - ahead);
    } else {
      add(Kind::InputGradients, step - ahead);
      add(Kind::WeightGradients, step - ahead - late);
    }
  }
  return actions;
}

StageSchedule weft::desc::makeZeroBubbleH1(int64_t stages, int64_t microBatches) {
  StageSchedule schedule;
  for (int64_t stage = 0; stage < stages; ++stage) {
    schedule.push_back(actionsOf(stage, microBatches, stages - 1 - stage, stage));
  }
  return schedule;
}

namespace {

/// The actions of a stage with two chunks, one on the way to the last stage and one on the way
/// back.
class VActions {
public:
  VActions(int64_t stage, int64_t stages, int64_t microBatches)
      : stage(stage), stages(stages), microBatches(microBatches),
        chunks{stage, 2 * stages - 1 - stage} {}

  std::vector<StageAction> run() {
    warmUp();
    // As many micro-batches as fill all stages, also if there are fewer.
    const int64_t count = std::max(2 * stages - 1, microBatches);
    while (forwards[1] < forwards[0] || forwards[0] < count) {
      if (forwards[0] < count) {
        forward(0);
      }
      backward(0);
      forward(1);
      backward(1);
    }
    coolDown();
    return std::move(actions);
  }

private:
  /// Until the first micro-batch is back, and each stage has begun with gradients.
  void warmUp() {
    for (int64_t i = 0; i < 2 * (stages - stage) - 1; ++i) {
      forward(0);
    }
    for (int64_t i = 0; i < stage; ++i) {
      forward(1);
      forward(0);
    }
    for (int64_t i = 0; i < stages - stage; ++i) {
      forward(1);
      backward(1);
    }
  }

  /// First what others wait for.
  void coolDown() {
    for (int64_t i = 0; i < stage; ++i) {
      inputs(0);
      inputs(1);
    }
    for (int64_t i = 0; i < stages - stage; ++i) {
      inputs(0);
      weights(0);
    }
    for (size_t way : {1, 0}) {
      while (weightsDone[way] < inputsDone[way]) {
        weights(way);
      }
    }
  }

  void forward(size_t way) { add(Kind::Forward, way, forwards); }
  void inputs(size_t way) {
    add(chunks[way] == 0 ? Kind::Backward : Kind::InputGradients, way, inputsDone);
  }
  void weights(size_t way) { add(Kind::WeightGradients, way, weightsDone); }
  void backward(size_t way) {
    inputs(way);
    weights(way);
  }

  void add(Kind kind, size_t way, std::array<int64_t, 2> &done) {
    const bool isDone = chunks[way] == 0 && kind == Kind::WeightGradients; // By backward.
    if (done[way] < microBatches && !isDone) {
      actions.push_back({chunks[way], kind, done[way]});
    }
    ++done[way];
  }

  const int64_t stage, stages, microBatches;
  const std::array<int64_t, 2> chunks;
  std::array<int64_t, 2> forwards = {}, inputsDone = {}, weightsDone = {};
  std::vector<StageAction> actions;
};

} // namespace

StageSchedule weft::desc::makeZeroBubbleV(int64_t stages, int64_t microBatches) {
  StageSchedule schedule;
  for (int64_t stage = 0; stage < stages; ++stage) {
    schedule.push_back(VActions(stage, stages, microBatches).run());
  }
  return schedule;
}
