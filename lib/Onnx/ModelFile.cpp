//===- ModelFile.cpp - the protobuf message of an ONNX file ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ModelFile.h"

#include "support/MappedFile.h"
#include "support/Text.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/text_format.h>

#include <limits>

namespace weft::onnx {

namespace {

/// Keeps the first error of a text.
struct FirstError : google::protobuf::io::ErrorCollector {
  void AddError(int line, int column, const std::string &message) override {
    if (text.empty()) {
      text = std::to_string(line + 1) + ":" + std::to_string(column + 1) + ": " + message;
    }
  }
  std::string text;
};

} // namespace

bool parseModel(const std::string &path, ::onnx::ModelProto &model, std::string &error) {
  rt::MappedFile file;
  if (!rt::succeeds(file.open(path), error)) {
    return false;
  }
  std::span<const char> bytes = file.bytes();
  if (bytes.size() > static_cast<size_t>(std::numeric_limits<int>::max())) {
    error = "is larger than 2 GiB, which protobuf cannot hold; export the weights into files "
            "beside it";
    return false;
  }
  google::protobuf::io::ArrayInputStream stream(bytes.data(), static_cast<int>(bytes.size()));
  if (path.ends_with(".textproto")) {
    FirstError first;
    google::protobuf::TextFormat::Parser parser;
    parser.RecordErrorsTo(&first);
    // The limit of binary files. The parser recurses, so the limit protects its stack from deep
    // files.
    parser.SetRecursionLimit(100);
    if (!parser.Parse(&stream, &model)) {
      error = "is not the text of an ONNX model: " + first.text;
      return false;
    }
  } else if (!model.ParseFromZeroCopyStream(&stream)) {
    error = "is not an ONNX model";
    return false;
  }
  if (!model.has_graph()) {
    error = "is not an ONNX model: it has no graph";
    return false;
  }
  return true;
}

void clearElements(::onnx::TensorProto &tensor) {
  tensor.clear_raw_data();
  tensor.clear_float_data();
  tensor.clear_double_data();
  tensor.clear_int32_data();
  tensor.clear_int64_data();
  tensor.clear_external_data();
}

} // namespace weft::onnx
