//===- Tensors.h - reads the tensors of an ONNX file ----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_ONNX_TENSORS_H
#define WEFT_LIB_ONNX_TENSORS_H

#include "Schema.h"

#include "weft-rt/Status.h"
#include "weft/Onnx/Graph.h"

namespace weft::onnx {

/// Reads tensors of the file at `path`. Their bytes lie in the messages themselves or in `storage`,
/// which gets converted numbers and external files, each mapped once.
class TensorReader {
public:
  TensorReader(const std::string &path, std::vector<std::shared_ptr<const void>> &storage)
      : path(path), storage(storage) {}

  /// Returns name, type, shape and bytes of `from`, which must outlive the result.
  rt::Result<Initializer> read(const ::onnx::TensorProto &from);

private:
  void readBytes(const ::onnx::TensorProto &from, Initializer &to);
  rt::Status readExternal(const ::onnx::TensorProto &from, Initializer &to);
  rt::Result<std::span<const char>> openBeside(const std::string &location);

  const std::string &path;
  std::vector<std::shared_ptr<const void>> &storage;
  std::map<std::string, std::span<const char>> files;
};

} // namespace weft::onnx

#endif // WEFT_LIB_ONNX_TENSORS_H
