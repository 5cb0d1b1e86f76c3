//===- ModelFile.h - the protobuf message of an ONNX file -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_ONNX_MODELFILE_H
#define WEFT_LIB_ONNX_MODELFILE_H

#include "Schema.h"

#include "weft/Onnx/Graph.h"

namespace weft::onnx {

/// Parses the file at `path`: as text where its name ends in .textproto, else as ONNX files are.
bool parseModel(const std::string &path, ::onnx::ModelProto &model, std::string &error);

/// The graph of `model`, which was read from `path`, and is kept by the graph.
desc::Result<Graph> readGraph(const std::string &path,
                              const std::shared_ptr<const ::onnx::ModelProto> &model);

/// Takes the elements out of `tensor`, and the names of files that have them.
void clearElements(::onnx::TensorProto &tensor);

} // namespace weft::onnx

#endif // WEFT_LIB_ONNX_MODELFILE_H
