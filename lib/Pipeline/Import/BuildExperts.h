//===- BuildExperts.h - experts in the place of an MLP --------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_IMPORT_BUILDEXPERTS_H
#define WEFT_LIB_PIPELINE_IMPORT_BUILDEXPERTS_H

#include "ModelBuilder.h"

#include "llvm/ADT/StringMap.h"

namespace weft {

/// The types of what a layer gives, see buildLayer.
llvm::SmallVector<mlir::Type> layerResultTypes(ModelBuilder &builder, LayerKind kind);

/// What the buffer of an expert holds of one sequence.
struct LoadLimit {
  int64_t slots = 0;
  /// Tokens of a sequence that an expert gets if all get the same.
  double mean = 0;
};

/// By the recipe's buffer_factor, or as many as a sequence has. A capacity may be less.
/// REQUIRES: a model with experts.
LoadLimit loadLimit(const ModelBuilder &builder);

struct Mixture {
  /// Weighted sum of what the experts give, wide.
  mlir::Value output;
  /// What the layer gives besides the residual stream.
  llvm::SmallVector<mlir::Value> results;
};

/// Routes the tokens of `normed`, and applies to each the experts it goes to. `input` is the same
/// as matmuls of layers take it. `parameters` are those of the layer, by their names inside of it.
Mixture buildExperts(ModelBuilder &builder, mlir::Value normed, mlir::Value input,
                     const llvm::StringMap<mlir::Value> &parameters);

/// What the MLP that all tokens go to gives, times the logistic function of a projection of its
/// input by `weight`.
mlir::Value gateShared(ModelBuilder &builder, mlir::Value normed, mlir::Value weight,
                       mlir::Value shared);

} // namespace weft

#endif // WEFT_LIB_PIPELINE_IMPORT_BUILDEXPERTS_H
