//===- Recipe.h - how a model is trained, all defaults filled in ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// RecipeSpec is what proto/weft/recipe.proto means once every default is filled
// in and every rule of docs/Descriptions.md holds.
//
// The functions keep no state: any number of threads may call them.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DESCRIPTION_RECIPE_H
#define WEFT_DESCRIPTION_RECIPE_H

#include "weft/Description/Diagnostic.h"
#include "weft/Description/Precision.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace weft::desc {

/// Adam with decoupled weight decay (arXiv 1711.05101), step counted from t = 1:
///   m = beta1 * m + (1 - beta1) * g,  v = beta2 * v + (1 - beta2) * g * g
///   p -= rate * (m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + epsilon) + weightDecay * p)
/// Decay applies to embeddings and projections, never to norms and biases.
struct AdamWSpec {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weightDecay = 0.1;
};

/// Gradient descent: m = momentum * m + g + weightDecay * p,  p -= rate * m. Without momentum there
/// is no state m. Decay applies to embeddings and projections, never to norms and biases.
struct SgdSpec {
  double momentum = 0.0;
  double weightDecay = 0.0;
};

/// By which numbers an update's matrix is multiplied; see MuonSpec.
enum class MuonScale { Spectral, Rms };

/// Momentum made orthogonal, for the projections of layers (arXiv 2502.16982):
///   m = momentum * m + g,  u = g + momentum * m, or m without nesterov
///   p -= rate * (scale * orthogonal(u) + weightDecay * p)
/// where orthogonal is `iterations` of Newton-Schulz, and scale is sqrt(max(1, rows / columns)) or
/// 0.2 * sqrt(max(rows, columns)). All other parameters follow `adamw` at adamwRate times the rate.
struct MuonSpec {
  double momentum = 0.95;
  bool nesterov = true;
  int64_t iterations = 5;
  MuonScale scale = MuonScale::Rms;
  double adamwRate = 1.0;
  /// Its weight decay is that of all.
  AdamWSpec adamw;
};

enum class DecayKind { Constant, Linear, Cosine };

/// The learning rate over the steps; see `learningRate`.
struct ScheduleSpec {
  double peakLearningRate = 0.0;
  int64_t warmupSteps = 0;
  DecayKind decay = DecayKind::Cosine;
  /// Rate that the decay ends at, as a share of the peak; 1 with Constant.
  double finalLearningRateFraction = 0.1;
};

/// FP8, by bits of exponent and mantissa.
enum class Float8 { E4M3, E5M2 };

/// What the linear matmuls of layers multiply.
struct Fp8Spec {
  /// Of activations and weights.
  Float8 values = Float8::E4M3;
  /// Of gradients of the matmuls' results.
  Float8 gradients = Float8::E5M2;
  /// Steps that scales look back; 0 where a scale is that of the tensor itself.
  int64_t history = 0;
};

/// What the loss is multiplied by where gradients have 16 bits with a short exponent.
struct LossScaleSpec {
  double initial = 65536;
  /// Steps without a skip until the scale grows by `factor`; 0 means that it stays.
  int64_t growthInterval = 2000;
  double factor = 2;
};

/// What statistics and capacities of a mixture of experts are of.
enum class RoutingGroup { Sequence, GlobalBatch };

/// What training adds to a mixture of experts; proto/weft/recipe.proto has the formulas.
struct RoutingSpec {
  /// Weights in the loss; 0 means none.
  double loadBalanceLoss = 0.0;
  RoutingGroup loadBalanceGroup = RoutingGroup::GlobalBatch;
  double routerZLoss = 0.0;
  /// Of the tokens that each expert would get if all got the same; none means that nothing is
  /// dropped.
  std::optional<double> capacityFactor;
  RoutingGroup capacityGroup = RoutingGroup::Sequence;
  /// What an expert's buffer holds of a sequence, in the same unit; none means that all of it has
  /// room. Never given with capacityFactor.
  std::optional<double> bufferFactor;
  /// What a step adds to or takes from selection biases; 0 means nothing.
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
  /// Of activations, and with F64 and F32 of everything; with the others parameters, optimizer
  /// state and sums are of F32.
  Precision precision = Precision::F32;
  /// Of what ranks exchange to add it up: that of sums, or BF16.
  Precision reduction = Precision::F32;
  /// Given with F16, and only then.
  std::optional<LossScaleSpec> lossScale;
  /// None means that matmuls multiply what `precision` says.
  std::optional<Fp8Spec> fp8;
  std::variant<AdamWSpec, SgdSpec, MuonSpec> optimizer;
  ScheduleSpec schedule;
  /// Largest allowed l2 norm of all gradients together; none means no clipping.
  std::optional<double> clipNorm;
  /// Weight of the mean over tokens of log(sum(exp(logits)))^2 in the loss; 0 means none.
  double zLoss = 0.0;
  RoutingSpec routing;
  /// Parts of each sequence whose logits are in memory one after the other.
  int64_t lossChunks = 1;
  /// The token that documents end with; none where they play no role.
  std::optional<int64_t> documentEnd;
  int64_t steps = 0;
  uint64_t seed = 0;
  /// Where these were written, for what is wrong only together with a model or machine.
  Location sequenceLengthLocation;
  Location precisionLocation;
  Location lossChunksLocation;
  Location documentsLocation;
  Location optimizerLocation;
  /// None where no routing was written.
  std::optional<Location> routingLocation;

  int64_t globalBatchTokens() const { return globalBatch * sequenceLength; }
};

/// Reads a text file of proto/weft/recipe.proto. Fails where the file cannot be read, does not
/// parse or violates a rule; then lists everything that is wrong.
Result<RecipeSpec> loadRecipe(const std::string &path);

/// As loadRecipe, from text; `file` is only for diagnostics.
Result<RecipeSpec> parseRecipe(std::string_view text, const std::string &file = "recipe");

/// The learning rate of step `step`, counted from 0. With w = warmupSteps, f the final fraction:
///   step < w:  peak * (step + 1) / w
///   else, x = (step - w) / (steps - w), at most 1:
///     Constant: peak;  Linear: peak * (1 - (1 - f) * x)
///     Cosine: peak * (f + (1 - f) * (1 + cos(pi * x)) / 2)
/// The last step's x is just below 1, so no step is spent at a rate of zero. Past the last step the
/// rate stays at the end value.
double learningRate(const RecipeSpec &recipe, int64_t step);

} // namespace weft::desc

#endif // WEFT_DESCRIPTION_RECIPE_H
