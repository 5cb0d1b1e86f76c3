//===- Pipeline.cpp - the pipeline of a plan, checked and printed -----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Pipeline.h"

#include "Reader.h"
#include "Text.h"

#include "weft/Description/StageLayers.h"

#include <algorithm>

namespace weft::desc {

// The schema lists the values of this enumeration in the same order.
static_assert(int(PipelineSchedule::GPipe) == proto::Pipeline::GPIPE);
static_assert(int(PipelineSchedule::ZeroBubbleH1) == proto::Pipeline::ZB_H1);
static_assert(int(PipelineSchedule::ZeroBubbleV) == proto::Pipeline::ZB_V);
static_assert(int(GatherPeriod::Run) == proto::Pipeline::RUN);
static_assert(int(GatherPeriod::MicroBatch) == proto::Pipeline::MICRO_BATCH);
static_assert(mostStages == kMostChunks);

/// As `makeSchedule` reads them, in the order of the enumeration.
constexpr std::string_view kSchedules[] = {"1f1b", "gpipe", "zbh1", "zbv"};

std::optional<PipelineSchedule> scheduleOfName(std::string_view name) {
  const auto *found = std::ranges::find(kSchedules, name);
  return found == std::end(kSchedules)
             ? std::nullopt
             : std::optional(PipelineSchedule(found - std::begin(kSchedules)));
}

std::string_view nameOf(PipelineSchedule schedule) { return kSchedules[size_t(schedule)]; }

std::optional<int64_t> detail::chunksOf(PipelineSchedule schedule) {
  switch (schedule) {
  case PipelineSchedule::OneFOneB:
  case PipelineSchedule::GPipe:
    return std::nullopt;
  case PipelineSchedule::ZeroBubbleH1:
    return 1;
  case PipelineSchedule::ZeroBubbleV:
    return 2;
  }
  return std::nullopt;
}

std::vector<int64_t> PipelineSpec::stagesOfChunks() const {
  if (!order.empty()) {
    return desc::stagesOfChunks(order);
  }
  std::vector<int64_t> list;
  for (int64_t chunk = 0; chunk < stages * chunks; ++chunk) {
    const bool isBack = schedule == PipelineSchedule::ZeroBubbleV && chunk >= stages;
    list.push_back(isBack ? 2 * stages - 1 - chunk : chunk % stages);
  }
  return list;
}

std::vector<int64_t> PipelineSpec::chunksWithParts() const {
  constexpr int64_t kMicroBatches = 2; // Schedules by name have the same parts for any number.
  const StageSchedule made =
      !order.empty()
          ? order
          : makeSchedule(nameOf(schedule), stages, chunks, kMicroBatches).value_or(StageSchedule());
  return desc::chunksWithParts(made);
}

std::vector<int64_t> PipelineSpec::layersOfChunks(int64_t count) const {
  return layers.empty() ? splitLayers(count, int64_t(stagesOfChunks().size())) : layers;
}

std::string PipelineSpec::scheduleText() const {
  std::string rows;
  for (const std::vector<StageAction> &actions : order) {
    rows += (rows.empty() ? "" : ";") + printActions(actions);
  }
  return !rows.empty() ? rows : std::string(nameOf(schedule));
}

bool operator==(const PipelineSpec &a, const PipelineSpec &b) {
  return a.stages == b.stages && a.chunks == b.chunks && a.layers == b.layers &&
         a.schedule == b.schedule && a.gather == b.gather && a.order == b.order;
}

namespace {

/// Returns what is wrong with an order of actions for so many micro-batches.
std::optional<ScheduleFault> faultOf(const StageSchedule &order, int64_t microBatches) {
  for (size_t stage = 0; stage < order.size(); ++stage) {
    for (const StageAction &action : order[stage]) {
      if (action.isOfMicroBatch() && action.microBatch >= microBatches) {
        std::string text = "expected actions on the plan's accumulation of ";
        text += detail::text(microBatches) + ", counted from 0, got " + describe(action);
        return ScheduleFault{int64_t(stage), text};
      }
    }
  }
  auto result = simulate(order, microBatches, [](const auto &) { return 1.0; });
  auto *fault = std::get_if<ScheduleFault>(&result);
  return fault ? std::optional(std::move(*fault)) : std::nullopt;
}

/// plan_r14
void checkStages(const proto::Pipeline &pipeline, detail::Fields &fields) {
  const int layers = pipeline.layers_size();
  const bool isOpen = pipeline.order_size() > 0 && !pipeline.has_stages() && layers == 0;
  if (pipeline.has_stages() == (layers > 0) && !isOpen) {
    fields.error(layers > 0 ? "layers" : "stages", "plan_r14",
                 std::string("expected either stages or layers, got ") +
                     (layers > 0 ? "both" : "neither"));
  }
  fields.integer("stages", "plan_r14", 2, mostStages);
  if (layers == 1 || layers > mostStages) {
    fields.error("layers", "plan_r14",
                 "expected 2 to " + detail::text(mostStages) + " stages, got " +
                     detail::text(int64_t(layers)));
  }
  for (int i = 0; i < layers; ++i) {
    bool isOuter = i == 0 || i + 1 == layers;
    int64_t least = isOuter ? 0 : 1;
    if (pipeline.layers(i) < least || pipeline.layers(i) > detail::maximumLayer) {
      fields.error("layers", "plan_r14",
                   "expected a number from " + detail::text(least) + " to " +
                       detail::text(detail::maximumLayer) + ", got " +
                       detail::text(pipeline.layers(i)),
                   i);
    }
  }
}

/// plan_r15
void checkChunks(const proto::Pipeline &pipeline, detail::Fields &fields) {
  const int64_t chunks = pipeline.chunks(), layers = pipeline.layers_size();
  const std::optional<int64_t> needed = detail::chunksOf(PipelineSchedule(pipeline.schedule()));
  if (needed && chunks != *needed) {
    fields.error("chunks", "plan_r15",
                 "expected " + detail::text(*needed) + " for each stage with " +
                     proto::Pipeline::Schedule_Name(pipeline.schedule()) + ", got " +
                     detail::text(chunks));
    return;
  }
  if (!fields.integer("chunks", "plan_r15", 1, mostStages / 2)) {
    return;
  }
  if (layers % chunks != 0 || layers == chunks) {
    fields.error("layers", "plan_r15",
                 "expected numbers for " + detail::text(chunks) +
                     " chunks of each of two stages or more, got " + detail::text(layers));
  }
  if (pipeline.stages() > mostStages / chunks) {
    fields.error("chunks", "plan_r15",
                 "expected at most " + detail::text(mostStages) + " chunks in all, got " +
                     detail::text(chunks) + " for each of " + detail::text(pipeline.stages()) +
                     " stages");
  }
}

/// plan_r16
void checkOrder(const proto::Pipeline &pipeline, int64_t microBatches, detail::Fields &fields) {
  if (pipeline.order_size() == 0 || microBatches < 1) {
    return;
  }
  fields.refused("plan_r16", {"schedule", "chunks", "gather"},
                 "as order says which chunk does what when");
  auto parsed = parseSchedule({pipeline.order().begin(), pipeline.order().end()});
  if (auto *fault = std::get_if<ScheduleFault>(&parsed)) {
    fields.error("order", "plan_r16", fault->text, int(fault->stage));
    return;
  }
  const auto &order = std::get<StageSchedule>(parsed);
  if (std::optional<ScheduleFault> fault = faultOf(order, microBatches)) {
    fields.error("order", "plan_r16", fault->text, int(fault->stage));
    return;
  }
  const auto stages = int64_t(order.size());
  const auto chunks = int64_t(stagesOfChunks(order).size());
  if (stages < 2 || (pipeline.has_stages() && pipeline.stages() != stages)) {
    fields.error("order", "plan_r16",
                 "expected the actions of " +
                     (pipeline.has_stages() ? "all " + detail::text(pipeline.stages())
                                            : std::string("two or more")) +
                     " stages, got those of " + detail::text(stages));
  }
  if (pipeline.layers_size() > 0 && pipeline.layers_size() != chunks) {
    fields.error("layers", "plan_r16",
                 "expected a number for each of the " + detail::text(chunks) +
                     " chunks of order, got " + detail::text(int64_t(pipeline.layers_size())));
  }
}

} // namespace

void detail::checkPipeline(const proto::Plan &plan, Fields &fields) {
  if (plan.has_pipeline()) {
    Fields inner = fields.nested("pipeline");
    checkStages(plan.pipeline(), inner);
    checkChunks(plan.pipeline(), inner);
    checkOrder(plan.pipeline(), plan.accumulation(), inner);
  }
}

PipelineSpec detail::resolvePipeline(const proto::Plan &plan, Fields &fields) {
  PipelineSpec spec;
  if (!plan.has_pipeline()) {
    return spec;
  }
  const proto::Pipeline &pipeline = plan.pipeline();
  spec.layers.assign(pipeline.layers().begin(), pipeline.layers().end());
  spec.chunks = pipeline.chunks();
  spec.order =
      std::get<StageSchedule>(parseSchedule({pipeline.order().begin(), pipeline.order().end()}));
  spec.stages = !spec.order.empty()   ? int64_t(spec.order.size())
                : spec.layers.empty() ? pipeline.stages()
                                      : int64_t(spec.layers.size()) / spec.chunks;
  spec.schedule = PipelineSchedule(pipeline.schedule());
  spec.gather = GatherPeriod(pipeline.gather());
  spec.location = fields.locationOf("pipeline");
  return spec;
}

std::string detail::textOf(const PipelineSpec &pipeline) {
  std::string text = pipeline.layers.empty() ? "{ stages: " + std::to_string(pipeline.stages) : "{";
  for (size_t chunk = 0; chunk < pipeline.layers.size(); ++chunk) {
    text += (chunk == 0 ? " layers: [" : ", ") + std::to_string(pipeline.layers[chunk]);
  }
  text += pipeline.layers.empty() ? "" : "]";
  text += pipeline.chunks > 1 ? " chunks: " + std::to_string(pipeline.chunks) : "";
  if (pipeline.order.empty()) {
    text += " schedule: " +
            proto::Pipeline::Schedule_Name(proto::Pipeline::Schedule(int(pipeline.schedule)));
  }
  if (pipeline.gather != GatherPeriod::Step) {
    text += " gather: " + proto::Pipeline::Gather_Name(proto::Pipeline::Gather(pipeline.gather));
  }
  for (const std::vector<StageAction> &actions : pipeline.order) {
    text += "\n  order: \"" + printActions(actions) + "\"";
  }
  return text + (pipeline.order.empty() ? " }" : "\n}");
}

/// Returns the lines of a file; blank ones at its end are none.
static std::vector<std::string> linesOf(const std::string &text) {
  std::vector<std::string> lines;
  const size_t last = text.find_last_not_of(" \t\r\n");
  for (size_t begin = 0; last != text.npos && begin <= last;) {
    size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

Result<PlanSpec> withSchedule(PlanSpec plan, const std::string &path) {
  Result<std::string> text = detail::readTextFile(path);
  if (!text) {
    return text.diagnostics();
  }
  auto failure = [&](const std::string &message, int64_t line) {
    return Diagnostics{{{path, int(line), 0}, "", "schedule_r1", message}};
  };
  auto parsed = parseSchedule(linesOf(*text));
  if (auto *fault = std::get_if<ScheduleFault>(&parsed)) {
    return failure(fault->text, fault->stage + 1);
  }
  const auto &order = std::get<StageSchedule>(parsed);
  const auto stages = int64_t(order.size());
  PipelineSpec &pipeline = plan.pipeline;
  if (stages < 2 || (pipeline.stages > 1 && pipeline.stages != stages)) {
    return failure("expected a line for each of " +
                       (pipeline.stages > 1 ? "the plan's " + detail::text(pipeline.stages)
                                            : std::string("two or more")) +
                       " stages, got " + detail::text(stages),
                   0);
  }
  if (std::optional<ScheduleFault> fault = faultOf(order, plan.accumulation)) {
    return failure(fault->text, fault->stage + 1);
  }
  if (const auto chunks = int64_t(stagesOfChunks(order).size());
      !pipeline.layers.empty() && int64_t(pipeline.layers.size()) != chunks) {
    return failure("expected the " + detail::text(int64_t(pipeline.layers.size())) +
                       " chunks of which the plan gives the layers, got " + detail::text(chunks),
                   0);
  }
  pipeline.location = pipeline.stages > 1 ? pipeline.location : Location{path, 0, 0};
  pipeline.stages = stages;
  pipeline.chunks = 1;
  pipeline.schedule = PipelineSchedule::OneFOneB;
  pipeline.gather = GatherPeriod::Step;
  pipeline.order = order;
  return plan;
}

} // namespace weft::desc
