//===- ModelBuilder.h - short forms of the ops that a model is made of ----===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_IMPORT_MODELBUILDER_H
#define WEFT_LIB_PIPELINE_IMPORT_MODELBUILDER_H

#include "weft/Description/Model.h"
#include "weft/Description/Recipe.h"
#include "weft/Dialect/Weft/IR/Weft.h"
#include "weft/Pipeline/Import/Parameters.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace weft {

/// What random bits depend on besides the site: the two counters of the step, and the number of
/// the layer. Null in a model without dropout.
struct RandomKey {
  mlir::Value seed, step, layer;
};

/// Where dropout happens; the numbers are those of docs/Numerics.md.
enum class DropoutSite : int64_t { Embedding = 0, Attention = 1, Mlp = 2 };

/// Computes one element of a map's result from one element of each operand.
using ScalarCode = llvm::function_ref<mlir::Value(mlir::ImplicitLocOpBuilder &, mlir::ValueRange)>;

/// Builds ops of one model at `builder`'s place. Every function's `name` says which part of the
/// model the op belongs to; it becomes the op's location. Result shapes follow from the operands.
class ModelBuilder {
public:
  ModelBuilder(mlir::OpBuilder &builder, const desc::ModelSpec &model,
               const desc::RecipeSpec &recipe)
      : builder(builder), model(model), recipe(recipe) {}

  mlir::Location location(llvm::StringRef name);
  /// What parameters, sums and the loss are held in: f32 or f64.
  mlir::Type wideElement();
  /// What activations are held in: bf16, or the same.
  mlir::Type activationElement();
  /// A tensor of what is held wide.
  mlir::RankedTensorType wideType(llvm::ArrayRef<int64_t> shape);
  /// The residual stream, [batch, sequence, hidden].
  mlir::RankedTensorType streamType();
  /// Whole numbers, one for each token: [batch, sequence].
  mlir::RankedTensorType idType();
  /// The counters of a step.
  mlir::RankedTensorType counterType();
  /// Cosines and sines, [2, sequence, pairs that are rotated].
  mlir::RankedTensorType rotaryTableType();
  /// A parameter or optimizer state whose dimensions mean `dimensions`.
  mlir::RankedTensorType parameterType(llvm::ArrayRef<llvm::StringRef> dimensions);
  /// What a parameter is held as.
  mlir::RankedTensorType heldType(const Parameter &parameter);
  /// What layers get of a parameter: matrices as the activations that they are multiplied with.
  mlir::RankedTensorType usedType(const Parameter &parameter);

  /// A function at the end of the module with an empty body, in which the builder then stands.
  mlir::func::FuncOp function(llvm::StringRef name, mlir::TypeRange arguments,
                              mlir::TypeRange results, bool isPrivate);

  mlir::Value index(llvm::StringRef name, int64_t value);
  mlir::Value read(llvm::StringRef variable, mlir::RankedTensorType type);
  /// Whether documents play a role.
  bool hasDocuments() const { return recipe.documentEnd.has_value(); }
  /// Whether the model draws random numbers while it runs.
  bool hasDropout() const { return model.dropout > 0.0 || model.attentionDropout > 0.0; }

  /// `value` as an activation.
  mlir::Value round(llvm::StringRef name, mlir::Value value);
  /// `value`, which the linear matmuls of a layer multiply, as an activation of the recipe's
  /// FP8 format; itself where the recipe has none and it is an activation.
  mlir::Value quantize(llvm::StringRef name, mlir::Value value);
  /// That of the quantized tensor `name` of a function, if the recipe's scales are delayed.
  HistoryAttr history(const llvm::Twine &name);
  /// The sums are wide. Of a layer's linear matmuls the recipe may quantize the gradient.
  mlir::Value contract(llvm::StringRef name, llvm::StringRef equation,
                       llvm::ArrayRef<mlir::Value> inputs, bool isOfLayer = false);
  /// An elementwise function of `inputs`, computed wide, with a result of type `element`. The first
  /// has the shape of the result; the others have its last dimensions, and are spread over the
  /// rest.
  mlir::Value map(llvm::StringRef name, llvm::ArrayRef<mlir::Value> inputs, mlir::Type element,
                  ScalarCode code);
  /// The same, the result being an activation.
  mlir::Value map(llvm::StringRef name, llvm::ArrayRef<mlir::Value> inputs, ScalarCode code) {
    return map(name, inputs, activationElement(), code);
  }
  /// Of an MLP: what its inner layer makes of what up and, in an MLP that has one, gate project.
  mlir::Value activate(llvm::StringRef name, mlir::Value up, mlir::Value gate);
  mlir::Value add(llvm::StringRef name, mlir::Value a, mlir::Value b);
  /// The norm of the model's kind; `bias` may be null.
  mlir::Value norm(llvm::StringRef name, mlir::Value input, mlir::Value scale, mlir::Value bias);
  /// `input` itself in a model that drops nothing.
  mlir::Value dropout(llvm::StringRef name, mlir::Value input, const RandomKey &key,
                      DropoutSite site);
  mlir::Value embedding(llvm::StringRef name, mlir::Value table, mlir::Value ids);

  mlir::OpBuilder &builder;
  const desc::ModelSpec &model;
  const desc::RecipeSpec &recipe;
};

/// A floating point constant of the type of `like`.
mlir::Value scalarConstant(mlir::ImplicitLocOpBuilder &builder, mlir::Value like, double value);

/// The mean cross-entropy over the recipe's batch of logits [batch, (sequence,) class] and targets,
/// and the z-loss of the recipe.
mlir::Value buildCrossEntropy(ModelBuilder &builder, mlir::Value logits, mlir::Value targets);

/// A variable at the builder's place.
void declareVariable(ModelBuilder &builder, VariableRole role, llvm::StringRef name,
                     llvm::ArrayRef<llvm::StringRef> dimensions, bool decays,
                     mlir::RankedTensorType type, mlir::DenseI64ArrayAttr matrix = {});
/// The counters that every module has among its inputs: seed and step_number.
void declareCounters(ModelBuilder &builder);
/// The optimizer of the recipe.
void declareOptimizer(ModelBuilder &builder);
/// The recipe without what validations leave out.
desc::RecipeSpec forEvaluation(desc::RecipeSpec recipe);
/// The stream of random numbers that a parameter of this name draws its initial values from.
uint64_t streamOf(llvm::StringRef name);

/// Which layers a function stands for.
enum class LayerKind { Plain, Experts };

/// Adds `func private @NAME(%layer, [%seed, %step], [%rotary_table], [%starts], %x, parameters…)
/// -> %x`: one block of the model, %starts being those of documents. Of a block with experts
/// further results are the loss of its routing, if the recipe has any, how many times a token was
/// dropped at an expert, if it has a capacity, the tokens of each sequence that each expert got, if
/// its buffer is bounded, and the new selection bias, if the recipe moves it.
void buildLayer(ModelBuilder &builder, LayerKind kind, llvm::StringRef name);

/// Adds `func @loss() -> tensor<fXX>`, and the functions @layer, @layer_experts and, where the
/// recipe wants the loss in parts, @head that it calls.
void buildLoss(ModelBuilder &builder);

/// Adds `func @evaluate()`, which observes the loss as "validation_loss" and on request the logits
/// as "logits", and the same functions, their names ending in _evaluate.
/// REQUIRES: a model without dropout and a recipe without z-loss and, but for buffers, routing.
void buildEvaluate(ModelBuilder &builder, bool observesLogits);

/// Adds `func @init()`, which gives every parameter its initial values.
void buildInit(ModelBuilder &builder);

} // namespace weft

#endif // WEFT_LIB_PIPELINE_IMPORT_MODELBUILDER_H
