//===- Import.h - an ONNX file as a folder of ours ------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `weft import` parts an ONNX file in two: the graph, and the parameters in a
// safetensors file that compiled programs load. The graph stays a valid ONNX file:
// it names the safetensors file as its external data.
//
// Exporters merge parameters that have equal values, such as the scales of norms,
// which all start at one. Trained so, they would stay one. What has the same number
// all along is therefore taken apart again: one parameter for each use.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_ONNX_IMPORT_H
#define WEFT_ONNX_IMPORT_H

#include "weft/Onnx/Graph.h"

namespace weft::onnx {

/// Names of initializers of floating-point numbers, more than one of them, that look like no
/// parameters: tables of positions, masks, and what only other constants are computed from.
std::vector<std::string> guessConstants(const Graph &graph);

struct Imported {
  /// Initializers that are not trained, for the description.
  std::vector<std::string> constants;
  /// Parameters and batch norm statistics in the safetensors file, and their elements.
  int64_t tensors = 0, elements = 0;
  /// Parameters that have been taken apart.
  int64_t parted = 0;
  int64_t nodes = 0, opset = 0;
};

/// Reads the ONNX file `source`, and writes `folder`/model.onnx and `folder`/weights.safetensors.
/// Fails where the file cannot be read (see `loadGraph`) or the others not be written.
desc::Result<Imported> importFile(const std::string &source, const std::string &folder);

} // namespace weft::onnx

#endif // WEFT_ONNX_IMPORT_H
