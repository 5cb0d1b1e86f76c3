//===- Parameters.h - the parameters of a model ---------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PIPELINE_IMPORT_PARAMETERS_H
#define WEFT_PIPELINE_IMPORT_PARAMETERS_H

#include "weft/Description/Model.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace weft {

/// What a parameter is to its layer; it decides the initial values, and whether the parameter
/// takes part in weight decay.
enum class ParameterKind {
  Weight,
  /// A projection that adds to the residual stream.
  ResidualWeight,
  /// A projection that decides where tokens go; its matmuls are never in FP8.
  Router,
  NormScale,
  Bias,
  /// What is added to scores where experts are picked: no gradient changes it.
  SelectionBias,
};

/// One parameter: its name and the meaning of its dimensions.
struct Parameter {
  std::string name;
  llvm::SmallVector<llvm::StringRef, 4> dimensions;
  ParameterKind kind;
  /// Elements of its dimension "ffn", which has another size in experts than in a plain MLP.
  int64_t ffn = 0;
  /// Of a projection of a layer, how many of its dimensions are the matrix's rows: its outputs. Of
  /// experts, which come first, each has a matrix. 0 for all other parameters.
  int64_t rows = 0;

  /// Whether it is a matrix, not a vector of a norm or a bias.
  bool isMatrix() const {
    return kind == ParameterKind::Weight || kind == ParameterKind::ResidualWeight ||
           kind == ParameterKind::Router;
  }
  /// Whether weight decay applies.
  bool decays() const { return isMatrix(); }
};

/// The parameters of one layer in the order in which it uses them, by names inside the layer
/// ("attention.query.weight"): of one with experts, or of one with a plain MLP.
llvm::SmallVector<Parameter> layerParameters(const desc::ModelSpec &model, bool hasExperts);

/// All parameters of the model in model order, by full names ("layers.3.attention.query.weight").
llvm::SmallVector<Parameter> modelParameters(const desc::ModelSpec &model);

/// Elements of each of its dimensions.
llvm::SmallVector<int64_t> parameterShape(const desc::ModelSpec &model, const Parameter &parameter);

/// "layers.3": what layer number `layer` is called, and what its parameters' names begin with.
std::string layerName(int64_t layer);

/// Standard deviation of the initial values; 0 where the parameter starts as a constant.
double initialDeviation(const desc::ModelSpec &model, const Parameter &parameter);

} // namespace weft

#endif // WEFT_PIPELINE_IMPORT_PARAMETERS_H
