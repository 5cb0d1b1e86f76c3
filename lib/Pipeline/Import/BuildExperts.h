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

/// Returns the types of a layer's results, see buildLayer.
llvm::SmallVector<mlir::Type> layerResultTypes(ModelBuilder &builder, LayerKind kind);

/// The size of an expert's buffer for one sequence.
struct LoadLimit {
  /// Tokens of a sequence that the buffer holds.
  int64_t slots = 0;
  /// Tokens of a sequence that each expert gets if all get equally many.
  double mean = 0;
};

/// Returns the size by the recipe's buffer_factor or, without one, for all tokens of a sequence. A
/// capacity may be less.
/// REQUIRES: a model with experts.
LoadLimit loadLimit(const ModelBuilder &builder);

struct Mixture {
  /// Weighted sum of the experts' outputs, wide.
  mlir::Value output;
  /// The layer's results besides the residual stream, see buildLayer.
  llvm::SmallVector<mlir::Value> results;
};

/// Routes the tokens of `normed`, and applies to each token its experts. `input` is `normed` in the
/// type of matmuls' operands. `parameters` are those of the layer, by their names inside the layer.
Mixture buildExperts(ModelBuilder &builder, mlir::Value normed, mlir::Value input,
                     const llvm::StringMap<mlir::Value> &parameters);

/// Multiplies `shared`, the output of the MLP of all tokens, by the logistic function of the
/// projection of its input by `weight`.
mlir::Value gateShared(ModelBuilder &builder, mlir::Value normed, mlir::Value weight,
                       mlir::Value shared);

} // namespace weft

#endif // WEFT_LIB_PIPELINE_IMPORT_BUILDEXPERTS_H
