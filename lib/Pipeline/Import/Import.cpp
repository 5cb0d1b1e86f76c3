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
  if (!desc::updatesMatrices(builder.recipe.optimizer) || parameter.rows == 0) {
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

} // namespace

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
