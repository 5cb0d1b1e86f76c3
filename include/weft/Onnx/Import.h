//===- Import.h - splits an ONNX file into graph and parameters -----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `weft import` splits an ONNX file in two: the graph, and the parameters in a safetensors file
// that compiled programs load. The graph is still a valid ONNX file, whose external data is the
// safetensors file.
//
// Exporters merge parameters of equal values, such as the scales of norms, which all start at one.
// In training they would then stay equal. So `weft import` splits every parameter whose elements
// are all the same number: each use gets its own.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_ONNX_IMPORT_H
#define WEFT_ONNX_IMPORT_H

#include "weft/Onnx/Graph.h"

namespace weft::onnx {

/// Returns the names of initializers of more than one floating-point number that are probably not
/// parameters: tables of positions, masks, and tensors that only other constants are computed from.
std::vector<std::string> guessConstants(const Graph &graph);

struct Imported {
  /// Initializers that are not trained, for the description.
  std::vector<std::string> constants;
  /// Parameters and batch norm statistics in the safetensors file, and their elements.
  int64_t tensors = 0, elements = 0;
  /// Parameters that have been split, one for each use.
  int64_t parted = 0;
  int64_t nodes = 0, opset = 0;
};

/// Reads the ONNX file `source`, and writes `folder`/model.onnx and `folder`/weights.safetensors.
/// Fails if the file cannot be read (see `loadGraph`) or the others cannot be written.
desc::Result<Imported> importFile(const std::string &source, const std::string &folder);

} // namespace weft::onnx

#endif // WEFT_ONNX_IMPORT_H
