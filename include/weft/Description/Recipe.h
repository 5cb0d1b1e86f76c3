//===- Recipe.h - a recipe of training, with all defaults filled in -------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A RecipeSpec holds the contents of a proto/weft/recipe.proto that fulfils every rule of
// docs/Descriptions.md, with every default filled in.
//
// The functions keep no state: any number of threads may call them.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DESCRIPTION_RECIPE_H
#define WEFT_DESCRIPTION_RECIPE_H

#include "weft/Description/Diagnostic.h"
#include "weft/Description/Optimizer.h"
#include "weft/Description/Precision.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weft::desc {

enum class DecayKind { Constant, Linear, Cosine };

/// The learning rate over the steps; see `learningRate`.
struct ScheduleSpec {
  double peakLearningRate = 0.0;
  int64_t warmupSteps = 0;
  DecayKind decay = DecayKind::Cosine;
  /// Final rate of the decay, as a share of the peak; 1 with Constant.
  double finalLearningRateFraction = 0.1;
};

/// FP8, by bits of exponent and mantissa.
enum class Float8 { E4M3, E5M2 };

/// FP8 formats of the operands of layers' linear matmuls.
struct Fp8Spec {
  /// Format of activations and weights.
  Float8 values = Float8::E4M3;
  /// Format of gradients of the matmuls' results.
  Float8 gradients = Float8::E5M2;
  /// Number of earlier steps that scales are computed from; 0 if from the tensor itself.
  int64_t history = 0;
};

/// Scaling of the loss with F16, whose exponent has few bits.
struct LossScaleSpec {
  double initial = 65536;
  /// Steps in a row without a skip until the scale is multiplied by `factor`; 0 means never.
  int64_t growthInterval = 2000;
  double factor = 2;
};

/// The tokens over which statistics and capacities of a mixture of experts are computed.
enum class RoutingGroup { Sequence, GlobalBatch };

/// Losses and capacities of a mixture of experts in training; proto/weft/recipe.proto has the
/// formulas.
struct RoutingSpec {
  /// Weight in the loss; 0 means no such loss.
  double loadBalanceLoss = 0.0;
  RoutingGroup loadBalanceGroup = RoutingGroup::GlobalBatch;
  double routerZLoss = 0.0;
  /// An expert's capacity over its tokens if all experts got equally many; none means that nothing
  /// is dropped.
  std::optional<double> capacityFactor;
  RoutingGroup capacityGroup = RoutingGroup::Sequence;
  /// Tokens of a sequence for which an expert's buffer has room, in the same unit; none means room
  /// for a whole sequence. Never given with capacityFactor.
  std::optional<double> bufferFactor;
  /// Change of selection biases by a step; 0 means that they stay.
  double biasUpdateSpeed = 0.0;

  bool hasLoss() const { return loadBalanceLoss > 0.0 || routerZLoss > 0.0; }
};

/// How to train: data per step, arithmetic, optimizer, losses.
struct RecipeSpec {
  /// Tokens of one sequence; 0 for a model of images.
  int64_t sequenceLength = 0;
  /// Samples (sequences or images) in one optimizer step, over all ranks. A batch given in tokens
  /// is already divided.
  int64_t globalBatch = 0;
  /// Precision of activations. With F64 and F32 it is that of everything; with the others,
  /// parameters, optimizer state and sums are F32.
  Precision precision = Precision::F32;
  /// Precision of the terms of sums that ranks exchange: that of sums, or BF16.
  Precision reduction = Precision::F32;
  /// Precision of parameters' gradients: that of parameters, or BF16.
  Precision gradientAccumulation = Precision::F32;
  /// Given if and only if `precision` is F16.
  std::optional<LossScaleSpec> lossScale;
  /// If not given, operands of matmuls have `precision`.
  std::optional<Fp8Spec> fp8;
  OptimizerSpec optimizer;
  ScheduleSpec schedule;
  /// Largest allowed l2 norm of all gradients together; none means no clipping.
  std::optional<double> clipNorm;
  /// Weight of the mean over tokens of log(sum(exp(logits)))^2 in the loss; 0 means none.
  double zLoss = 0.0;
  RoutingSpec routing;
  /// Number of parts of each sequence whose logits are computed one after the other, to save
  /// memory.
  int64_t lossChunks = 1;
  /// The last token of each document; none if documents are ignored.
  std::optional<int64_t> documentEnd;
  int64_t steps = 0;
  uint64_t seed = 0;
  /// Places in the text, for errors that show only together with a model or machine.
  Location sequenceLengthLocation;
  Location precisionLocation;
  Location lossChunksLocation;
  Location documentsLocation;
  Location optimizerLocation;
  /// None if the recipe has no routing.
  std::optional<Location> routingLocation;

  int64_t globalBatchTokens() const { return globalBatch * sequenceLength; }
};

/// Reads a text file of proto/weft/recipe.proto. Fails if the file cannot be read, does not parse
/// or violates a rule, and then lists all errors.
Result<RecipeSpec> loadRecipe(const std::string &path);

/// As loadRecipe, but reads `text`; `file` is only for diagnostics.
Result<RecipeSpec> parseRecipe(std::string_view text, const std::string &file = "recipe");

/// Returns the learning rate of step `step`, counted from 0. With w = warmupSteps, f the final
/// fraction:
///   step < w:  peak * (step + 1) / w
///   else, x = (step - w) / (steps - w), at most 1:
///     Constant: peak;  Linear: peak * (1 - (1 - f) * x)
///     Cosine: peak * (f + (1 - f) * (1 + cos(pi * x)) / 2)
/// The last step's x is just below 1, so no step has a rate of zero. After the last step the rate
/// keeps its final value.
double learningRate(const RecipeSpec &recipe, int64_t step);

} // namespace weft::desc

#endif // WEFT_DESCRIPTION_RECIPE_H
