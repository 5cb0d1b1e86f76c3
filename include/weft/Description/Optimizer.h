//===- Optimizer.h - the optimizers that a recipe may name -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An OptimizerSpec holds an optimizer's part of a proto/weft/recipe.proto, with every default
// filled in. Code that depends on the optimizer asks what it needs to know by the functions below;
// only Import and the formulas of Differentiate see the numbers.
//
// The functions keep no state: any number of threads may call them.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DESCRIPTION_OPTIMIZER_H
#define WEFT_DESCRIPTION_OPTIMIZER_H

#include <cstdint>
#include <string>
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

/// The factor on an update's matrix; see MuonSpec.
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
  /// Its weight decay applies to all parameters.
  AdamWSpec adamw;
};

using OptimizerSpec = std::variant<AdamWSpec, SgdSpec, MuonSpec>;

/// Returns the optimizer's name, which is that of its field of a recipe: "adamw".
std::string nameOf(const OptimizerSpec &optimizer);

/// Returns true if an update depends on all elements of a matrix, and so on which dimensions of a
/// parameter are its rows. Otherwise each element is updated by itself.
bool updatesMatrices(const OptimizerSpec &optimizer);

/// Returns the names of all optimizers that update each element by itself: "adamw or sgd".
std::string elementwiseOptimizers();

/// Returns the fewest states that a parameter may have; each is as large as the parameter.
int fewestStates(const OptimizerSpec &optimizer);

/// Returns true if the size of updates follows from the learning rate, and not from the size of
/// gradients.
bool normalizesUpdates(const OptimizerSpec &optimizer);

/// Returns the number named epsilon, by which an update of elements with small gradients is
/// smaller; null for optimizers without.
double *epsilonOf(OptimizerSpec &optimizer);

} // namespace weft::desc

#endif // WEFT_DESCRIPTION_OPTIMIZER_H
