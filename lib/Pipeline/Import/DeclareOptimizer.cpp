//===- DeclareOptimizer.cpp - the optimizer of a recipe -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ModelBuilder.h"

using namespace mlir;
using namespace weft;

namespace {

DecayKind decayOf(const desc::ScheduleSpec &schedule) {
  switch (schedule.decay) {
  case desc::DecayKind::Constant:
    return DecayKind::Constant;
  case desc::DecayKind::Linear:
    return DecayKind::Linear;
  case desc::DecayKind::Cosine:
    break;
  }
  return DecayKind::Cosine;
}

/// The numbers of all optimizers. Those that an optimizer lacks keep the op's default.
struct Numbers {
  OptimizerKind kind = OptimizerKind::AdamW;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, momentum = 0.0, weightDecay = 0.0;
  bool nesterov = false;
  int64_t iterations = 5;
  MuonScale scale = MuonScale::RMS;
  double otherRate = 1.0;

  void take(const desc::AdamWSpec &adamw) {
    beta1 = adamw.beta1;
    beta2 = adamw.beta2;
    epsilon = adamw.epsilon;
    weightDecay = adamw.weightDecay;
  }
  void take(const desc::SgdSpec &sgd) {
    kind = OptimizerKind::SGD;
    momentum = sgd.momentum;
    weightDecay = sgd.weightDecay;
  }
  void take(const desc::MuonSpec &muon) {
    take(muon.adamw);
    kind = OptimizerKind::Muon;
    momentum = muon.momentum;
    nesterov = muon.nesterov;
    iterations = muon.iterations;
    scale = muon.scale == desc::MuonScale::Rms ? MuonScale::RMS : MuonScale::Spectral;
    otherRate = muon.adamwRate;
  }
};

} // namespace

void weft::declareOptimizer(ModelBuilder &builder) {
  const desc::RecipeSpec &recipe = builder.recipe;
  Numbers numbers;
  std::visit([&](const auto &optimizer) { numbers.take(optimizer); }, recipe.optimizer);
  desc::LossScaleSpec scale = recipe.lossScale.value_or(desc::LossScaleSpec{0, 0});
  auto number = [](double value) { return llvm::APFloat(value); };
  OptimizerOp::create(
      builder.builder, builder.location("optimizer"), numbers.kind,
      number(recipe.schedule.peakLearningRate), number(numbers.beta1), number(numbers.beta2),
      number(numbers.epsilon), number(numbers.momentum), number(numbers.weightDecay),
      number(recipe.clipNorm.value_or(0.0)), numbers.nesterov, numbers.iterations, numbers.scale,
      number(numbers.otherRate), decayOf(recipe.schedule), recipe.schedule.warmupSteps,
      recipe.steps, number(recipe.schedule.finalLearningRateFraction), number(scale.initial),
      scale.growthInterval, number(scale.factor),
      numbers.kind == OptimizerKind::Muon && recipe.precision == desc::Precision::BF16,
      recipe.gradientAccumulation == desc::Precision::BF16);
}
