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

/// The values that random bits depend on besides the site: the two counters of the step, and the
/// number of the layer. All null in a model without dropout.
struct RandomKey {
  mlir::Value seed, step, layer;
};

/// Where dropout happens; the numbers are those of docs/Numerics.md.
enum class DropoutSite : int64_t { Embedding = 0, Attention = 1, Mlp = 2 };

/// Computes one element of a map's result from one element of each operand.
using ScalarCode = llvm::function_ref<mlir::Value(mlir::ImplicitLocOpBuilder &, mlir::ValueRange)>;

/// Builds ops of one model at the insertion point of `builder`. The argument `name` of each
/// function is the part of the model that the op belongs to, and becomes its location. Result
/// shapes follow from the operands.
class ModelBuilder {
public:
  ModelBuilder(mlir::OpBuilder &builder, const desc::ModelSpec &model,
               const desc::RecipeSpec &recipe)
      : builder(builder), model(model), recipe(recipe) {}

  mlir::Location location(llvm::StringRef name);
  /// The wide element type, of parameters, sums and the loss: f32 or f64.
  mlir::Type wideElement();
  /// The element type of activations: bf16, or the wide type.
  mlir::Type activationElement();
  /// A tensor of the wide element type.
  mlir::RankedTensorType wideType(llvm::ArrayRef<int64_t> shape);
  /// The residual stream, [batch, sequence, hidden].
  mlir::RankedTensorType streamType();
  /// Integers, one for each token: [batch, sequence].
  mlir::RankedTensorType idType();
  /// The counters of a step.
  mlir::RankedTensorType counterType();
  /// Cosines and sines, [2, sequence, rotated pairs].
  mlir::RankedTensorType rotaryTableType();
  /// A parameter or optimizer state with these named dimensions.
  mlir::RankedTensorType parameterType(llvm::ArrayRef<llvm::StringRef> dimensions);
  /// The type of a parameter's variable.
  mlir::RankedTensorType heldType(const Parameter &parameter);
  /// The type in which layers get a parameter: matrices have the element type of activations.
  mlir::RankedTensorType usedType(const Parameter &parameter);

  /// Adds a function with an empty body to the end of the module, and moves the builder into it.
  mlir::func::FuncOp function(llvm::StringRef name, mlir::TypeRange arguments,
                              mlir::TypeRange results, bool isPrivate);

  mlir::Value index(llvm::StringRef name, int64_t value);
  mlir::Value read(llvm::StringRef variable, mlir::RankedTensorType type);
  /// Returns true if attention ends at the borders of documents.
  bool hasDocuments() const { return recipe.documentEnd.has_value(); }
  /// Returns true if the model draws random numbers while it runs.
  bool hasDropout() const { return model.dropout > 0.0 || model.attentionDropout > 0.0; }

  /// Converts `value` to the element type of activations.
  mlir::Value round(llvm::StringRef name, mlir::Value value);
  /// Converts `value`, an operand of a layer's linear matmuls, to an activation quantized in the
  /// recipe's FP8 format. Without such a format, only rounds it.
  mlir::Value quantize(llvm::StringRef name, mlir::Value value);
  /// Returns the history of the quantized tensor `name` if the recipe's scales are delayed, or
  /// null.
  HistoryAttr history(const llvm::Twine &name);
  /// Builds an einsum with wide sums. If `isOfLayer` is true, the recipe may quantize the gradient.
  mlir::Value contract(llvm::StringRef name, llvm::StringRef equation,
                       llvm::ArrayRef<mlir::Value> inputs, bool isOfLayer = false);
  /// Builds an elementwise function of `inputs`, computed wide, with a result of element type
  /// `element`. The first input has the shape of the result; the others have its last dimensions,
  /// and are broadcast over the rest.
  mlir::Value map(llvm::StringRef name, llvm::ArrayRef<mlir::Value> inputs, mlir::Type element,
                  ScalarCode code);
  /// The same with a result of the element type of activations.
  mlir::Value map(llvm::StringRef name, llvm::ArrayRef<mlir::Value> inputs, ScalarCode code) {
    return map(name, inputs, activationElement(), code);
  }
  /// Returns the inner activations of an MLP from its projections `up` and `gate`, which is null in
  /// an MLP without a gate.
  mlir::Value activate(llvm::StringRef name, mlir::Value up, mlir::Value gate);
  mlir::Value add(llvm::StringRef name, mlir::Value a, mlir::Value b);
  /// The norm of the model's kind; `bias` may be null.
  mlir::Value norm(llvm::StringRef name, mlir::Value input, mlir::Value scale, mlir::Value bias);
  /// Returns `input` itself in a model without dropout.
  mlir::Value dropout(llvm::StringRef name, mlir::Value input, const RandomKey &key,
                      DropoutSite site);
  mlir::Value embedding(llvm::StringRef name, mlir::Value table, mlir::Value ids);

  mlir::OpBuilder &builder;
  const desc::ModelSpec &model;
  const desc::RecipeSpec &recipe;
};

/// Returns a floating-point constant of the type of `like`.
mlir::Value scalarConstant(mlir::ImplicitLocOpBuilder &builder, mlir::Value like, double value);

/// Returns the mean cross-entropy of logits [batch, (sequence,) class] and targets over the
/// recipe's batch, plus the recipe's z-loss.
mlir::Value buildCrossEntropy(ModelBuilder &builder, mlir::Value logits, mlir::Value targets);

/// Declares a variable at the builder's insertion point.
void declareVariable(ModelBuilder &builder, VariableRole role, llvm::StringRef name,
                     llvm::ArrayRef<llvm::StringRef> dimensions, bool decays,
                     mlir::RankedTensorType type, mlir::DenseI64ArrayAttr matrix = {});
/// Declares the counters among the inputs of every module: seed and step_number.
void declareCounters(ModelBuilder &builder);
/// Declares the optimizer of the recipe.
void declareOptimizer(ModelBuilder &builder);
/// Returns the recipe without the terms and settings that validations leave out.
desc::RecipeSpec forEvaluation(desc::RecipeSpec recipe);
/// Returns the stream of random numbers for the initial values of a parameter of this name.
uint64_t streamOf(llvm::StringRef name);

/// The kinds of layers; each has its own function.
enum class LayerKind { Plain, Experts };

/// Adds `func private @NAME(%layer, [%seed, %step], [%rotary_table], [%starts], %x, parameters…)
/// -> %x`: one block of the model. %starts are the starts of documents. A block with experts has
/// further results: the loss of its routing, if the recipe has any; the number of times that a
/// token was dropped at an expert, if there is a capacity; the tokens of each sequence that each
/// expert got, if its buffer is bounded; and the new selection bias, if the recipe updates it.
void buildLayer(ModelBuilder &builder, LayerKind kind, llvm::StringRef name);

/// Adds `func @loss() -> tensor<fXX>` and the functions that it calls: @layer, @layer_experts and,
/// if the recipe computes the loss in parts, @head.
void buildLoss(ModelBuilder &builder);

/// Adds `func @evaluate()`, which observes the loss as "validation_loss" and, if `observesLogits`
/// is true, the logits as "logits", and the functions that it calls, with names that end in
/// _evaluate. REQUIRES: a model without dropout and a recipe without z-loss and, but for buffers,
/// routing.
void buildEvaluate(ModelBuilder &builder, bool observesLogits);

/// Adds `func @init()`, which gives every parameter its initial values.
void buildInit(ModelBuilder &builder);

} // namespace weft

#endif // WEFT_LIB_PIPELINE_IMPORT_MODELBUILDER_H
