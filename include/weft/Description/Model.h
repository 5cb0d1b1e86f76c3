//===- Model.h - a model, with all defaults filled in ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A ModelSpec holds the contents of a proto/weft/model.proto that fulfils every rule of
// docs/Descriptions.md, with every default filled in. Passes read only this struct, so they need
// not check whether a field is present.
//
// The functions keep no state: any number of threads may call them.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DESCRIPTION_MODEL_H
#define WEFT_DESCRIPTION_MODEL_H

#include "weft/Description/Diagnostic.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft::desc {

/// LayerNorm subtracts the mean and divides by the standard deviation; RmsNorm divides by the root
/// of the mean square.
enum class NormKind { LayerNorm, RmsNorm };

/// Gelu uses erf; GeluTanh is its approximation by tanh; SwiGlu is silu(gate) * up.
enum class ActivationKind { Gelu, GeluTanh, SwiGlu };

/// How a token's position enters the model.
enum class PositionKind { Learned, Rotary, None };

/// How rotary frequencies are stretched to reach longer sequences.
enum class RotaryScaling { None, Linear, Llama3, Yarn };

/// Rotary position embedding; meaningful only with PositionKind::Rotary. Element i of a head is
/// rotated with element i + head_size / 2.
struct RotarySpec {
  double theta = 10000.0;
  RotaryScaling scaling = RotaryScaling::None;
  /// The factor by which sequences may become longer; 1 with None.
  double factor = 1.0;
  /// Llama3 only: with the length L = originalMaximumLength, wave lengths above L /
  /// lowFrequencyFactor are stretched by the whole factor, those below L / highFrequencyFactor not
  /// at all, and those between by a mix.
  double lowFrequencyFactor = 1.0;
  double highFrequencyFactor = 4.0;
  /// Llama3 and Yarn.
  int64_t originalMaximumLength = 0;
  /// Yarn only: pairs that turn at least fastTurns times in the original length are kept, those
  /// that turn at most slowTurns times are stretched by the whole factor, and those between by a
  /// mix.
  double fastTurns = 32.0;
  double slowTurns = 1.0;
  /// True if the mix begins and ends at whole numbers of pairs.
  bool wholePairs = true;
  /// Factors on rotated elements and on scores of attention; 1 without Yarn.
  double rotatedScale = 1.0;
  double scoreScale = 1.0;

  bool operator==(const RotarySpec &) const = default;
};

/// Keys and values computed from a latent vector; proto/weft/model.proto has the formulas.
struct LatentSpec {
  int64_t keyValueRank = 0;
  /// 0 if queries have no latent vector.
  int64_t queryRank = 0;
  /// Number of rotated elements of a head; these come first.
  int64_t rotarySize = 0;
  int64_t valueSize = 0;

  bool operator==(const LatentSpec &) const = default;
};

/// How a router's logits become scores: by softmax over all experts, or by the logistic function.
enum class ScoringKind { Softmax, Sigmoid };

/// A mixture of experts that replaces the MLP; proto/weft/model.proto has the formula.
struct ExpertsSpec {
  int64_t count = 0;
  /// Experts that a token goes to.
  int64_t perToken = 0;
  /// Elements of the inner layer of one expert.
  int64_t ffn = 0;
  /// Elements of the inner layer of the MLP that all tokens go to; 0 means that there is none.
  int64_t sharedFfn = 0;
  bool sharedGate = false;
  /// Layer l has experts if l >= firstLayer and l + 1 is a multiple of layerPeriod.
  int64_t firstLayer = 0;
  int64_t layerPeriod = 1;
  ScoringKind scoring = ScoringKind::Softmax;
  /// True if a token's weights are divided by their sum. False with one expert for each token,
  /// whose weight would be constant.
  bool normalizes = true;
  double scale = 1.0;
  /// Groups of neighbouring experts, of which a token uses only keptGroups.
  int64_t groups = 1;
  int64_t keptGroups = 1;
  /// True if a bias is added to scores when experts are picked.
  bool selectionBias = false;

  bool operator==(const ExpertsSpec &) const = default;
};

/// Weights are drawn from a normal distribution of mean 0; biases start at 0, norm weights at 1.
struct InitializationSpec {
  double standardDeviation = 0.02;
  /// attention.output and mlp.down use standardDeviation / sqrt(2 * layers).
  bool scaleResidualProjections = true;

  bool operator==(const InitializationSpec &) const = default;
};

/// A model whose forward pass is an ONNX file.
struct GraphSpec {
  /// The file's path, relative to the current directory.
  std::string path;
  /// Names of initializers that are not trained.
  std::vector<std::string> constants;
  /// Samples that share statistics in a batch norm; 0 for all of the global batch.
  int64_t batchNormGroup = 0;
  /// The place of the group's size, for errors that show only together with a recipe.
  Location groupLocation;

  /// Returns true if both are equal in everything but groupLocation.
  bool operator==(const GraphSpec &other) const {
    return path == other.path && constants == other.constants &&
           batchNormGroup == other.batchNormGroup;
  }
};

/// A decoder-only transformer with pre-norm residual blocks. Sizes are counts of elements.
struct ModelSpec {
  std::string name;
  /// If given, the model is this graph, and the members below have no meaning.
  std::optional<GraphSpec> graph;
  int64_t layers = 0;
  int64_t hidden = 0;
  /// Query heads; a multiple of kvHeads.
  int64_t heads = 0;
  int64_t kvHeads = 0;
  /// Elements of one head. heads * headSize need not equal hidden.
  int64_t headSize = 0;
  int64_t ffn = 0;
  int64_t vocabulary = 0;
  /// The longest sequence the model may see; 0 means no limit (never with Learned).
  int64_t maximumLength = 0;
  NormKind norm = NormKind::LayerNorm;
  double normEpsilon = 1e-5;
  /// Never true with RmsNorm.
  bool normBias = true;
  ActivationKind activation = ActivationKind::Gelu;
  PositionKind positions = PositionKind::Learned;
  RotarySpec rotary;
  /// Biases of query, key and value.
  bool attentionBiases = false;
  bool attentionOutputBias = false;
  /// Queries and keys are normalized head by head before they are rotated. Never with LayerNorm.
  bool queryKeyNorm = false;
  /// Positions that a query sees, its own included; 0 means all up to its own.
  int64_t attentionWindow = 0;
  /// Biases of up, gate and down.
  bool mlpBiases = false;
  /// Probability of dropping an element of the embedding and of a block's output that is added to
  /// the residual stream, in [0, 1).
  double dropout = 0.0;
  /// Probability of dropping an attention probability, in [0, 1).
  double attentionDropout = 0.0;
  /// The head's weight is embed.tokens.weight.
  bool tiedEmbeddings = false;
  /// Never with biases of attention, with LayerNorm, or with fewer kvHeads than heads.
  std::optional<LatentSpec> latent;
  /// Replaces the MLP of some or all layers.
  std::optional<ExpertsSpec> experts;
  InitializationSpec initialization;

  /// Returns true if layer number `layer` has experts instead of a plain MLP.
  bool hasExperts(int64_t layer) const {
    return experts && layer >= experts->firstLayer && (layer + 1) % experts->layerPeriod == 0;
  }
  /// Number of layers that have experts.
  int64_t expertLayers() const;
  /// Query heads that share one key and value head.
  int64_t group() const { return heads / kvHeads; }
  /// Rotated elements of a head, and elements of a head's value.
  int64_t rotarySize() const { return latent ? latent->rotarySize : headSize; }
  int64_t valueSize() const { return latent ? latent->valueSize : headSize; }
  bool hasGate() const { return activation == ActivationKind::SwiGlu; }

  bool operator==(const ModelSpec &) const = default;
};

/// Reads a text file of proto/weft/model.proto. Fails if the file cannot be read, does not parse or
/// violates a rule, and then lists all errors.
Result<ModelSpec> loadModel(const std::string &path);

/// As loadModel, but reads `text`; `file` is only for diagnostics.
Result<ModelSpec> parseModel(std::string_view text, const std::string &file = "model");

/// Prints `model` as a text of proto/weft/model.proto, which parseModel reads as an equal model.
/// Leaves out fields that have their defaults.
std::string printModel(const ModelSpec &model);

/// Returns the number of trainable elements; a tied head counts once.
int64_t parameterCount(const ModelSpec &model);

/// Returns the radians per position of each of the rotarySize() / 2 rotated pairs, with scaling
/// applied: theta^(-2i / rotarySize()), as in RoFormer (arXiv 2104.09864). Linear scaling divides
/// all of them by the factor; RotarySpec explains Llama3 and Yarn scaling. REQUIRES:
/// model.positions is Rotary.
std::vector<double> rotaryFrequencies(const ModelSpec &model);

/// Returns the default of RotarySpec::rotatedScale with Yarn.
double defaultRotatedScale(double factor);

} // namespace weft::desc

#endif // WEFT_DESCRIPTION_MODEL_H
