//===- Recipe.cpp - a recipe of training, with all defaults filled in -----===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Description/Recipe.h"

#include "OptimizerFields.h"
#include "Reader.h"
#include "Text.h"
#include "weft/recipe.pb.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace weft::desc {

using detail::Bounds;
using detail::Fields;

// The schema lists the values of these enumerations in the same order.
static_assert(int(Float8::E5M2) == proto::Fp8::Format_MAX);
static_assert(int(RoutingGroup::GlobalBatch) == proto::Routing::Group_MAX);

/// Keeps every product of batch, sequence, heads and element size within 63 bits.
static constexpr int64_t maximumBatchTokens = int64_t(1) << 28;

/// Returns the number of samples of a batch that is not given in tokens.
static int64_t samplesOf(const proto::Recipe &recipe) {
  return recipe.has_global_batch_samples() ? recipe.global_batch_samples()
                                           : recipe.global_batch_sequences();
}

static void checkBatch(const proto::Recipe &recipe, Fields &fields) {
  // recipe_r3
  bool length = fields.integer("sequence_length", "recipe_r3", 1, 1 << 20);
  fields.integer("global_batch_sequences", "recipe_r3", 1, maximumBatchTokens);
  bool tokens = fields.integer("global_batch_tokens", "recipe_r3", 1, maximumBatchTokens);
  fields.integer("global_batch_samples", "recipe_r3", 1, maximumBatchTokens);
  // recipe_r4
  if (recipe.global_batch_case() == proto::Recipe::GLOBAL_BATCH_NOT_SET) {
    fields.error("global_batch_sequences", "recipe_r4",
                 "missing, expected this or global_batch_tokens");
  }
  // recipe_r5
  if (!fields.has("sequence_length") && recipe.has_global_batch_tokens()) {
    fields.error("global_batch_tokens", "recipe_r5",
                 "expected a sequence_length as well, to compute the number of sequences");
  }
  if (length && tokens && recipe.global_batch_tokens() % recipe.sequence_length() != 0) {
    fields.error("global_batch_tokens", "recipe_r5",
                 "expected a multiple of sequence_length " +
                     detail::text(recipe.sequence_length()) + ", got " +
                     detail::text(recipe.global_batch_tokens()));
  }
  // recipe_r6
  int64_t samples = samplesOf(recipe);
  const char *field =
      recipe.has_global_batch_samples() ? "global_batch_samples" : "global_batch_sequences";
  if (length && fields.has(field) && samples > maximumBatchTokens / recipe.sequence_length()) {
    fields.error(field, "recipe_r6",
                 "expected at most " + detail::text(maximumBatchTokens) +
                     " tokens in a batch, got " + detail::text(samples) + " sequences of " +
                     detail::text(recipe.sequence_length()));
  }
}

static void checkSchedule(const proto::Recipe &recipe, Fields fields, bool stepsAreValid) {
  const proto::Schedule &schedule = recipe.schedule();
  fields.required("recipe_r2", {"peak_learning_rate"});
  // recipe_r9
  fields.real("peak_learning_rate", "recipe_r9", {.low = 0, .high = 100, .above = true});
  bool warmup = fields.integer("warmup_steps", "recipe_r9", 0, 1'000'000'000);
  fields.real("final_learning_rate_fraction", "recipe_r9", {.low = 0, .high = 1});
  // recipe_r10
  if (warmup && stepsAreValid && schedule.warmup_steps() > recipe.steps()) {
    fields.error("warmup_steps", "recipe_r10",
                 "expected at most steps " + detail::text(recipe.steps()) + ", got " +
                     detail::text(schedule.warmup_steps()));
  }
  // recipe_r11
  if (schedule.decay() == proto::Schedule::CONSTANT) {
    fields.refused("recipe_r11", {"final_learning_rate_fraction"}, "with decay CONSTANT");
  }
}

static bool isPowerOfTwo(double value) {
  int exponent;
  return std::frexp(value, &exponent) == 0.5;
}

static void checkLossScale(const proto::LossScale &scale, Fields fields) {
  // recipe_r19
  auto power = [&](const char *field, double value, Bounds bounds) {
    if (fields.real(field, "recipe_r19", bounds) && !isPowerOfTwo(value)) {
      fields.error(field, "recipe_r19", "expected a power of two, got " + detail::text(value));
    }
  };
  power("initial", scale.initial(), {.low = 1, .high = 0x1p24});
  power("factor", scale.factor(), {.low = 2, .high = 1024});
  fields.integer("growth_interval", "recipe_r19", 0, 1'000'000);
  if (scale.growth_interval() == 0) {
    fields.refused("recipe_r19", {"factor"}, "with growth_interval 0");
  }
}

static void checkPrecision(const proto::Recipe &recipe, Fields &fields) {
  std::string with = "with precision " + proto::Precision_Name(recipe.precision());
  // recipe_r18
  if (recipe.precision() == proto::F8) {
    fields.error("precision", "recipe_r18", "expected F64, F32, BF16, TF32 or F16, got F8");
  }
  // recipe_r19
  if (recipe.precision() != proto::F16) {
    fields.refused("recipe_r19", {"loss_scale"}, with);
  } else if (recipe.has_loss_scale()) {
    checkLossScale(recipe.loss_scale(), fields.nested("loss_scale"));
  }
  // recipe_r20
  if (recipe.precision() == proto::F16 && recipe.has_fp8()) {
    fields.error("fp8", "recipe_r20", "expected a precision with the range of float32, got F16");
  }
  // recipe_r21
  if (recipe.has_fp8()) {
    Fields fp8 = fields.nested("fp8");
    if (recipe.fp8().scaling() != proto::Fp8::DELAYED) {
      fp8.refused("recipe_r21", {"history"}, "with scaling CURRENT");
    } else {
      fp8.integer("history", "recipe_r21", 1, 65536);
    }
  }
}

static void checkMixed(const proto::Recipe &recipe, Fields &fields) {
  // recipe_r13
  if (recipe.precision() != proto::BF16 && recipe.precision() != proto::F16) {
    fields.refused("recipe_r13", {"mixed"},
                   "with precision " + proto::Precision_Name(recipe.precision()));
  }
  if (!recipe.has_mixed()) {
    return;
  }
  Fields mixed = fields.nested("mixed");
  auto expect = [&](const char *field, proto::Precision got, bool isRight, const char *expected) {
    if (!isRight) { // recipe_r14
      mixed.error(field, "recipe_r14",
                  std::string("expected ") + expected + ", got " + proto::Precision_Name(got));
    }
  };
  const proto::Mixed &given = recipe.mixed();
  expect("master", given.master(), given.master() == proto::F32, "F32");
  expect("accumulation", given.accumulation(), given.accumulation() == proto::F32, "F32");
  bool mayBeBF16 = recipe.precision() == proto::BF16;
  auto expectSums = [&](const char *field, proto::Precision got) {
    expect(field, got, got == proto::F32 || (mayBeBF16 && got == proto::BF16),
           mayBeBF16 ? "F32 or BF16" : "F32");
  };
  expectSums("reduction", given.reduction());
  expectSums("gradient_accumulation", given.gradient_accumulation());
}

static void checkRouting(const proto::Routing &routing, Fields fields) {
  // recipe_r15
  fields.real("load_balance_loss", "recipe_r15", {.low = 0, .high = 100});
  fields.real("router_z_loss", "recipe_r15", {.low = 0, .high = 1});
  fields.real("capacity_factor", "recipe_r15", {.low = 0, .high = 4096, .above = true});
  fields.real("bias_update_speed", "recipe_r15", {.low = 0, .high = 1});
  fields.real("buffer_factor", "recipe_r15", {.low = 0, .high = 4096, .above = true});
  // recipe_r16
  if (routing.load_balance_loss() == 0) {
    fields.refused("recipe_r16", {"load_balance_group"}, "without load_balance_loss");
  }
  if (!routing.has_capacity_factor()) {
    fields.refused("recipe_r16", {"capacity_group"}, "without capacity_factor");
  } else {
    fields.refused("recipe_r16", {"buffer_factor"}, "with capacity_factor");
  }
}

static void checkRecipe(const proto::Recipe &recipe, Fields &fields) {
  // recipe_r2
  fields.required("recipe_r2", {"schedule", "steps"});
  checkBatch(recipe, fields);
  detail::checkOptimizer(recipe, fields);
  bool steps = fields.integer("steps", "recipe_r3", 1, 1'000'000'000);
  if (recipe.has_schedule()) {
    checkSchedule(recipe, fields.nested("schedule"), steps);
  }
  checkPrecision(recipe, fields);
  checkMixed(recipe, fields);
  // recipe_r12
  fields.real("clip_norm", "recipe_r12", {.low = 0, .high = 1e30, .above = true});
  fields.real("z_loss", "recipe_r12", {.low = 0, .high = 1});
  // recipe_r17
  fields.integer("loss_chunks", "recipe_r17", 1, 1 << 20);
  if (recipe.has_routing()) {
    checkRouting(recipe.routing(), fields.nested("routing"));
  }
  if (recipe.has_documents()) { // recipe_r22
    Fields documents = fields.nested("documents");
    documents.required("recipe_r22", {"end"});
    documents.integer("end", "recipe_r22", 0, std::numeric_limits<int32_t>::max());
  }
}

static ScheduleSpec toSpec(const proto::Schedule &schedule) {
  ScheduleSpec spec;
  spec.peakLearningRate = schedule.peak_learning_rate();
  spec.warmupSteps = schedule.warmup_steps();
  spec.decay = schedule.decay() == proto::Schedule::CONSTANT ? DecayKind::Constant
               : schedule.decay() == proto::Schedule::LINEAR ? DecayKind::Linear
                                                             : DecayKind::Cosine;
  spec.finalLearningRateFraction =
      spec.decay == DecayKind::Constant ? 1.0 : schedule.final_learning_rate_fraction();
  return spec;
}

static RoutingSpec toSpec(const proto::Routing &routing) {
  RoutingSpec spec;
  spec.loadBalanceLoss = routing.load_balance_loss();
  spec.loadBalanceGroup = RoutingGroup(routing.load_balance_group());
  spec.routerZLoss = routing.router_z_loss();
  if (routing.has_capacity_factor()) {
    spec.capacityFactor = routing.capacity_factor();
  }
  spec.capacityGroup = RoutingGroup(routing.capacity_group());
  if (routing.has_buffer_factor()) {
    spec.bufferFactor = routing.buffer_factor();
  }
  spec.biasUpdateSpeed = routing.bias_update_speed();
  return spec;
}

static RecipeSpec resolve(const proto::Recipe &recipe, Fields &fields) {
  RecipeSpec spec;
  spec.sequenceLength = recipe.sequence_length();
  spec.globalBatch = recipe.has_global_batch_tokens()
                         ? recipe.global_batch_tokens() / recipe.sequence_length()
                         : samplesOf(recipe);
  spec.precision = Precision(recipe.precision());
  spec.reduction =
      spec.precision == Precision::F64 ? spec.precision : Precision(recipe.mixed().reduction());
  spec.gradientAccumulation = spec.precision == Precision::F64
                                  ? spec.precision
                                  : Precision(recipe.mixed().gradient_accumulation());
  if (spec.precision == Precision::F16) {
    const proto::LossScale &scale = recipe.loss_scale();
    spec.lossScale = {scale.initial(), scale.growth_interval(), scale.factor()};
  }
  if (recipe.has_fp8()) {
    const proto::Fp8 &fp8 = recipe.fp8();
    spec.fp8 = {Float8(fp8.values()), Float8(fp8.gradients()),
                fp8.scaling() == proto::Fp8::DELAYED ? fp8.history() : 0};
  }
  spec.optimizer = detail::resolveOptimizer(recipe);
  spec.optimizerLocation = fields.locationOf(nameOf(spec.optimizer));
  spec.schedule = toSpec(recipe.schedule());
  if (recipe.has_clip_norm()) {
    spec.clipNorm = recipe.clip_norm();
  }
  spec.zLoss = recipe.z_loss();
  spec.routing = toSpec(recipe.routing());
  if (recipe.has_routing()) {
    spec.routingLocation = fields.locationOf("routing");
  }
  if (recipe.has_documents()) {
    spec.documentEnd = recipe.documents().end();
    spec.documentsLocation = fields.locationOf("documents");
  }
  spec.lossChunks = recipe.loss_chunks();
  spec.lossChunksLocation = fields.locationOf("loss_chunks");
  spec.steps = recipe.steps();
  spec.seed = recipe.seed();
  spec.sequenceLengthLocation = fields.locationOf("sequence_length");
  spec.precisionLocation = fields.locationOf("precision");
  return spec;
}

Result<RecipeSpec> parseRecipe(std::string_view text, const std::string &file) {
  return detail::readDescription<proto::Recipe>(text, file, "recipe_r1", checkRecipe, resolve);
}

Result<RecipeSpec> loadRecipe(const std::string &path) {
  return detail::loadDescription<RecipeSpec>(path, parseRecipe);
}

double learningRate(const RecipeSpec &recipe, int64_t step) {
  const ScheduleSpec &schedule = recipe.schedule;
  if (step < schedule.warmupSteps) {
    return schedule.peakLearningRate * double(step + 1) / double(schedule.warmupSteps);
  }
  // If all steps are warm-up, every later step is past the end.
  int64_t decaySteps = std::max<int64_t>(recipe.steps - schedule.warmupSteps, 1);
  int64_t done = step - schedule.warmupSteps + (recipe.steps == schedule.warmupSteps ? 1 : 0);
  double x = std::min(1.0, double(done) / double(decaySteps));
  double f = schedule.finalLearningRateFraction;
  switch (schedule.decay) {
  case DecayKind::Constant:
    break;
  case DecayKind::Linear:
    return schedule.peakLearningRate * (1 - (1 - f) * x);
  case DecayKind::Cosine:
    return schedule.peakLearningRate * (f + (1 - f) * (1 + std::cos(std::numbers::pi * x)) / 2);
  }
  return schedule.peakLearningRate;
}

} // namespace weft::desc
