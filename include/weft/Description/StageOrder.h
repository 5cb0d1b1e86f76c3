//===- StageOrder.h - the order of a pipeline's actions --------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A model's layers are cut into chunks, each of which lies in a stage of the pipeline. A schedule
// says in which order each stage does its actions: forward and backward of each micro-batch through
// each of its chunks, and, if it likes, where parameters are gathered and gradients reduced.
// Backward may be cut in two: the gradients of a chunk's inputs, for which the chunk before waits,
// and those of its weights, for which nobody does. From a schedule and the times of actions follows
// a course: when each action begins and ends, if a stage does one at a time, as early as those that
// it needs have ended.
//
// Schedules are data: anybody may write one. GPipe is that of Huang et al., 2019, 1F1B the
// one without flushes within a batch of Narayanan et al., 2021 (section 2.2.1), and so is
// interleaved 1F1B, for several chunks a stage (section 2.2.2). ZB-H1 is that of Qi et al., Zero
// Bubble Pipeline Parallelism, 2024 (section 2.1), ZB-V that of the same and of Qi et al., Pipeline
// Parallelism with Controllable Memory, 2024.
//
// All functions are pure and may run on any thread.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DESCRIPTION_STAGEORDER_H
#define WEFT_DESCRIPTION_STAGEORDER_H

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace weft::desc {

/// The work of a stage in one of its chunks. Chunks are numbered in the order of the model, over
/// all stages.
struct StageAction {
  enum class Kind : uint8_t {
    Forward,
    /// Both of the next two at once.
    Backward,
    /// The gradients of the chunk's inputs, for which the chunk before waits.
    InputGradients,
    /// The gradients of the chunk's weights, behind those of its inputs.
    WeightGradients,
    /// Gathers the parameters that forward and backward of the chunk use from here on. Without it
    /// they are gathered once, when a step begins, and whole until its end.
    Unshard,
    /// Ends the use of what was gathered: its memory is free until it is gathered anew.
    Reshard,
    /// Reduces the chunk's sums of gradients over the ranks that have terms of them. Without it
    /// that is done behind all forward and backward.
    ReduceGrad,
  };

  int64_t chunk = 0;
  Kind kind = Kind::Forward;
  /// Of forward, backward and its two parts; of another action, how many of its kind the chunk has
  /// had before.
  int64_t microBatch = 0;
  auto operator<=>(const StageAction &) const = default;

  bool isOfMicroBatch() const { return kind == Kind::Forward || isOfBackward(); }
  bool isOfBackward() const { return givesInputGradients() || kind == Kind::WeightGradients; }
  bool givesInputGradients() const {
    return kind == Kind::Backward || kind == Kind::InputGradients;
  }
  bool givesWeightGradients() const {
    return kind == Kind::Backward || kind == Kind::WeightGradients;
  }
  /// Returns true if the action uses the chunk's parameters: gradients of weights need none.
  bool usesParameters() const { return kind == Kind::Forward || givesInputGradients(); }
};

/// Returns "forward of micro-batch 3 in chunk 1", or "UNSHARD of chunk 1".
std::string describe(const StageAction &action);

/// The actions of each stage, in its order.
using StageSchedule = std::vector<std::vector<StageAction>>;

/// What is wrong with a schedule, and in the actions of which stage.
struct ScheduleFault {
  int64_t stage = 0;
  std::string text;
};

/// Return the schedule of `stages` stages for `microBatches` micro-batches, where chunk c lies in
/// stage c mod `stages`, and each stage has `chunks` of them. GPipe does forward of all
/// micro-batches first, chunk after chunk. 1F1B does so for as many as there are stages behind, and
/// then backward of one after forward of another, so that a stage has few micro-batches in flight.
/// With several chunks it is interleaved: as many micro-batches as there are stages pass through
/// one chunk before they pass through the next of the same stage. Where stages do not divide
/// micro-batches, a few more pass at a time.
StageSchedule makeGPipe(int64_t stages, int64_t chunks, int64_t microBatches);
StageSchedule makeOneForwardOneBackward(int64_t stages, int64_t chunks, int64_t microBatches);
/// Returns ZB-H1, for one chunk a stage: 1F1B whose gradients of weights wait, in stage s for s
/// micro-batches, so that no stage keeps more of these than the first one of 1F1B, which has as
/// many as there are stages. The first stage sends no gradients on, so its backward is not cut.
StageSchedule makeZeroBubbleH1(int64_t stages, int64_t microBatches);
/// Returns ZB-V, for two chunks a stage: chunks 0 to `stages` - 1 lie in stages 0 to `stages` - 1,
/// and the others in the order back, so that the last stage has both in the middle and the first
/// one both ends. Each stage begins with gradients at about the same time, and keeps as much as the
/// first one of 1F1B, two half chunks for each stage.
StageSchedule makeZeroBubbleV(int64_t stages, int64_t microBatches);
/// Returns the schedule of that name: "gpipe", "1f1b", "zbh1" or "zbv"; nothing for other names, or
/// if it is not for so many chunks.
std::optional<StageSchedule> makeSchedule(std::string_view name, int64_t stages, int64_t chunks,
                                          int64_t microBatches);

/// How long a stage keeps what it gathers of a chunk's parameters.
enum class GatherPeriod : uint8_t {
  /// All the step.
  Step,
  /// While it does nothing but actions of that chunk.
  Run,
  /// For one forward or backward.
  MicroBatch,
};

/// Returns the period of that name: "step", "run" or "micro-batch"; nothing for other names.
std::optional<GatherPeriod> makeGatherPeriod(std::string_view name);
/// Returns the name of a period.
std::string_view nameOf(GatherPeriod period);

/// Returns the schedule with UNSHARD before the actions of each period, and RESHARD behind them.
/// REQUIRES: it has neither.
StageSchedule withGathers(const StageSchedule &schedule, GatherPeriod period);

/// The most chunks and micro-batches of a schedule that is read from text.
inline constexpr int64_t kMostChunks = 1024, kMostMicroBatches = 1 << 20;

/// Returns the schedule of which `rows` are the stages' actions, each such as "0F0,0F1,0B0,0B1":
/// the chunk, F for forward, B for backward, I for gradients of inputs or W for those of weights,
/// and the micro-batch; or the chunk and UNSHARD, RESHARD or REDUCE_GRAD. Actions are separated by
/// commas or blanks; an empty one, between two commas, means nothing. Fails if something else is
/// there.
std::variant<StageSchedule, ScheduleFault> parseSchedule(const std::vector<std::string> &rows);

/// Returns the text that `parseSchedule` reads as these actions, "0F0,0F1,0B0,0B1".
std::string printActions(const std::vector<StageAction> &actions);

/// Returns the chunks that have gradients of inputs or of weights by themselves, in order.
std::vector<int64_t> chunksWithParts(const StageSchedule &schedule);

/// Returns the stage of each chunk. REQUIRES: each chunk up to the last has forward or backward in
/// one stage.
std::vector<int64_t> stagesOfChunks(const StageSchedule &schedule);

/// What a schedule is for.
enum class SchedulePurpose : uint8_t {
  /// Forward and backward.
  Training,
  /// Forward alone.
  Evaluation,
};

/// Returns the schedule without UNSHARD and RESHARD.
StageSchedule withoutGathers(const StageSchedule &schedule);
/// Returns the actions of a schedule on its first `microBatches`, and the gathers that they need.
StageSchedule firstOf(const StageSchedule &schedule, int64_t microBatches);
/// Returns the actions of a schedule that an evaluation of so many micro-batches has.
StageSchedule forwardOf(const StageSchedule &schedule, int64_t microBatches);

/// An action, and when its stage begins and ends it, in seconds or any other unit.
struct TimedAction {
  StageAction action;
  int64_t stage = 0;
  double begin = 0, end = 0;
};

struct Course {
  /// In the order in which they begin; those that begin together in the order of their stages.
  std::vector<TimedAction> actions;
  double end = 0;

  /// Returns the share of all stages' time in which they do nothing.
  double bubble() const;
};

/// Returns the course of a schedule. Forward needs forward of the chunk before, backward, or its
/// first part, that of the chunk behind, and that of the last chunk its forward. `timeOf` is
/// positive. Fails if an action is missing, doubled, unknown, or waits for itself, if two stages
/// have one chunk, if a chunk does not take micro-batches in their order, in which losses and
/// gradients are added up, if gradients of weights come before those of inputs, or if parameters
/// are not gathered where a chunk needs them, or gradients reduced before they are complete.
std::variant<Course, ScheduleFault>
simulate(const StageSchedule &schedule, int64_t microBatches,
         const std::function<double(const StageAction &)> &timeOf,
         SchedulePurpose purpose = SchedulePurpose::Training);

} // namespace weft::desc

#endif // WEFT_DESCRIPTION_STAGEORDER_H
