//===- Import.cpp - from a description to the graph -----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Pipeline/Import/Import.h"

#include "ModelBuilder.h"
#include "weft/Pipeline/Import/Parameters.h"

using namespace mlir;
using namespace weft;

void weft::declareVariable(ModelBuilder &builder, VariableRole role, llvm::StringRef name,
                           llvm::ArrayRef<llvm::StringRef> dimensions, bool decays,
                           RankedTensorType type, DenseI64ArrayAttr matrix) {
  VariableOp::create(builder.builder, builder.location(name), role, name,
                     builder.builder.getStrArrayAttr(dimensions), decays, matrix, type);
}

void weft::declareCounters(ModelBuilder &builder) {
  for (llvm::StringRef name : {"seed", "step_number"}) {
    declareVariable(builder, VariableRole::Input, name, {}, false, builder.counterType());
  }
}

namespace {

/// Returns the matrix of a parameter for optimizers that update matrices; null for other
/// optimizers, and for parameters outside of layers.
DenseI64ArrayAttr matrixOf(ModelBuilder &builder, const Parameter &parameter) {
  if (!std::holds_alternative<desc::MuonSpec>(builder.recipe.optimizer) || parameter.rows == 0) {
    return {};
  }
  int64_t stacked = parameter.dimensions.front() == "experts" && parameter.dimensions.size() > 2;
  return builder.builder.getDenseI64ArrayAttr({stacked, parameter.rows});
}

void declareVariables(ModelBuilder &builder) {
  for (const Parameter &parameter : modelParameters(builder.model)) {
    bool isTrained = parameter.kind != ParameterKind::SelectionBias;
    declareVariable(builder, isTrained ? VariableRole::Parameter : VariableRole::Statistic,
                    parameter.name, parameter.dimensions, parameter.decays(),
                    builder.heldType(parameter), matrixOf(builder, parameter));
  }
  llvm::SmallVector<llvm::StringRef> inputs{"tokens", "targets"};
  if (builder.hasDocuments()) {
    inputs.push_back("document_starts");
  }
  for (llvm::StringRef name : inputs) {
    declareVariable(builder, VariableRole::Input, name, {"batch", "sequence"}, false,
                    builder.idType());
  }
  declareCounters(builder);
}

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

/// Sets the numbers of any optimizer. Numbers that an optimizer lacks keep the op's default.
struct OptimizerNumbers {
  OptimizerKind kind = OptimizerKind::AdamW;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, momentum = 0.0, weightDecay = 0.0;

  void take(const desc::AdamWSpec &adamw) {
    beta1 = adamw.beta1;
    beta2 = adamw.beta2;
    epsilon = adamw.epsilon;
    weightDecay = adamw.weightDecay;
  }
};

OptimizerNumbers numbersOf(const desc::RecipeSpec &recipe) {
  OptimizerNumbers numbers;
  if (const auto *adamw = std::get_if<desc::AdamWSpec>(&recipe.optimizer)) {
    numbers.take(*adamw);
  } else if (const auto *muon = std::get_if<desc::MuonSpec>(&recipe.optimizer)) {
    numbers.kind = OptimizerKind::Muon;
    numbers.take(muon->adamw);
    numbers.momentum = muon->momentum;
  } else {
    const auto &sgd = std::get<desc::SgdSpec>(recipe.optimizer);
    numbers.kind = OptimizerKind::SGD;
    numbers.momentum = sgd.momentum;
    numbers.weightDecay = sgd.weightDecay;
  }
  return numbers;
}

} // namespace

void weft::declareOptimizer(ModelBuilder &builder) {
  const desc::RecipeSpec &recipe = builder.recipe;
  OptimizerNumbers numbers = numbersOf(recipe);
  desc::MuonSpec muon;
  if (const auto *given = std::get_if<desc::MuonSpec>(&recipe.optimizer)) {
    muon = *given;
  }
  desc::LossScaleSpec scale = recipe.lossScale.value_or(desc::LossScaleSpec{0, 0});
  auto number = [](double value) { return llvm::APFloat(value); };
  OptimizerOp::create(builder.builder, builder.location("optimizer"), numbers.kind,
                      number(recipe.schedule.peakLearningRate), number(numbers.beta1),
                      number(numbers.beta2), number(numbers.epsilon), number(numbers.momentum),
                      number(numbers.weightDecay), number(recipe.clipNorm.value_or(0.0)),
                      numbers.kind == OptimizerKind::Muon && muon.nesterov, muon.iterations,
                      muon.scale == desc::MuonScale::Rms ? MuonScale::RMS : MuonScale::Spectral,
                      number(muon.adamwRate), decayOf(recipe.schedule), recipe.schedule.warmupSteps,
                      recipe.steps, number(recipe.schedule.finalLearningRateFraction),
                      number(scale.initial), scale.growthInterval, number(scale.factor));
}

// A validation computes the model as it is used, and only its cross-entropy.

static desc::ModelSpec withoutDropout(desc::ModelSpec model) {
  model.dropout = model.attentionDropout = 0.0;
  return model;
}

desc::RecipeSpec weft::forEvaluation(desc::RecipeSpec recipe) {
  recipe.zLoss = 0.0;
  desc::RoutingSpec buffers;
  buffers.bufferFactor = recipe.routing.bufferFactor;
  recipe.routing = buffers;
  return recipe;
}

OwningOpRef<ModuleOp> weft::importModel(MLIRContext &context, const desc::ModelSpec &model,
                                        const desc::RecipeSpec &recipe,
                                        const ImportOptions &options) {
  context.loadDialect<WeftDialect, func::FuncDialect, arith::ArithDialect, math::MathDialect>();
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context), model.name);
  OpBuilder ops(module->getBodyRegion());
  ModelBuilder builder(ops, model, recipe);
  declareVariables(builder);
  declareOptimizer(builder);
  buildLoss(builder);
  buildInit(builder);
  desc::ModelSpec evaluated = withoutDropout(model);
  desc::RecipeSpec plain = forEvaluation(recipe);
  ModelBuilder evaluation(ops, evaluated, plain);
  buildEvaluate(evaluation, options.observesLogits);
  return module;
}
