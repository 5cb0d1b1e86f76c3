//===- ModelFile.h - the protobuf message of an ONNX file -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_ONNX_MODELFILE_H
#define WEFT_LIB_ONNX_MODELFILE_H

#include "Schema.h"

#include "weft-rt/Status.h"
#include "weft/Onnx/Graph.h"

namespace weft::onnx {

/// Parses the file at `path`: as text if its name ends in .textproto, else as binary ONNX.
rt::Result<std::shared_ptr<::onnx::ModelProto>> parseModel(const std::string &path);

/// Reads the graph of `model`, which was parsed from `path`. The graph shares ownership of `model`.
desc::Result<Graph> readGraph(const std::string &path,
                              const std::shared_ptr<const ::onnx::ModelProto> &model);

/// Removes the elements of `tensor`, and the names of their external files.
void clearElements(::onnx::TensorProto &tensor);

} // namespace weft::onnx

#endif // WEFT_LIB_ONNX_MODELFILE_H
