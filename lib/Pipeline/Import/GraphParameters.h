//===- GraphParameters.h - which tensors of an ONNX graph are trained -----===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_IMPORT_GRAPHPARAMETERS_H
#define WEFT_LIB_PIPELINE_IMPORT_GRAPHPARAMETERS_H

#include "weft/Description/Model.h"
#include "weft/Onnx/Graph.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

namespace weft {

/// The parameters of a graph: floating-point initializers of more than one element that the logits
/// depend on, except those that the description lists as constant, and statistics of batch norms.
struct GraphParameters {
  /// Refers to `graph`, which has an output.
  GraphParameters(const onnx::Graph &graph, const desc::GraphSpec &spec);

  bool isParameter(llvm::StringRef name) const { return trained.contains(name.str()); }
  /// Returns true if the statistic of this name is a variance, false if it is a mean.
  bool isVariance(llvm::StringRef name) const { return variances.contains(name.str()); }

  const onnx::Graph &graph;
  /// Samples that share statistics in a batch norm; 0 for all.
  int64_t batchNormGroup = 0;
  /// In the order of the file.
  llvm::SmallVector<const onnx::Initializer *> inOrder, statisticsInOrder;

private:
  std::set<std::string> trained, statistics, variances;
};

} // namespace weft

#endif // WEFT_LIB_PIPELINE_IMPORT_GRAPHPARAMETERS_H
