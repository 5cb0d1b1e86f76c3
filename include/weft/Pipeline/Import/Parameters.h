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

/// The role of a parameter in its layer. It decides the initial values, and whether the parameter
/// decays.
enum class ParameterKind {
  Weight,
  /// A projection whose result is added to the residual stream.
  ResidualWeight,
  /// A projection that routes tokens to experts; its matmuls are never in FP8.
  Router,
  NormScale,
  Bias,
  /// A bias on the scores that experts are picked by; no gradient changes it.
  SelectionBias,
};

/// One parameter: its name and the meaning of its dimensions.
struct Parameter {
  std::string name;
  llvm::SmallVector<llvm::StringRef, 4> dimensions;
  ParameterKind kind;
  /// Size of the dimension "ffn", which differs between experts and a plain MLP.
  int64_t ffn = 0;
  /// For a projection of a layer, the number of dimensions that are rows of its matrix, which are
  /// its outputs. A dimension of experts stands before them, and each expert has a matrix. 0 for
  /// all other parameters.
  int64_t rows = 0;

  /// Returns true for a matrix, false for a vector of a norm or a bias.
  bool isMatrix() const {
    return kind == ParameterKind::Weight || kind == ParameterKind::ResidualWeight ||
           kind == ParameterKind::Router;
  }
  /// Returns true if weight decay applies.
  bool decays() const { return isMatrix(); }
};

/// Returns the parameters of one layer, with experts or with a plain MLP, in the order in which the
/// layer uses them. Names are relative to the layer ("attention.query.weight").
llvm::SmallVector<Parameter> layerParameters(const desc::ModelSpec &model, bool hasExperts);

/// Returns all parameters in model order, with full names ("layers.3.attention.query.weight").
llvm::SmallVector<Parameter> modelParameters(const desc::ModelSpec &model);

/// Returns the size of each dimension of `parameter`.
llvm::SmallVector<int64_t> parameterShape(const desc::ModelSpec &model, const Parameter &parameter);

/// Returns the name of a layer, which its parameters' names begin with: "layers.3".
std::string layerName(int64_t layer);

/// Returns the standard deviation of the initial values; 0 if the parameter starts as a constant.
double initialDeviation(const desc::ModelSpec &model, const Parameter &parameter);

} // namespace weft

#endif // WEFT_PIPELINE_IMPORT_PARAMETERS_H
