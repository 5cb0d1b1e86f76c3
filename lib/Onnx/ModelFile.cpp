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

rt::Result<std::shared_ptr<::onnx::ModelProto>> parseModel(const std::string &path) {
  rt::MappedFile file;
  if (rt::Status status = file.open(path); !status) {
    return status.error();
  }
  std::span<const char> bytes = file.bytes();
  if (bytes.size() > static_cast<size_t>(std::numeric_limits<int>::max())) {
    return rt::makeError(
        "is larger than 2 GiB, which protobuf cannot hold; export the weights into "
        "files beside it");
  }
  auto model = std::make_shared<::onnx::ModelProto>();
  google::protobuf::io::ArrayInputStream stream(bytes.data(), static_cast<int>(bytes.size()));
  if (path.ends_with(".textproto")) {
    FirstError first;
    google::protobuf::TextFormat::Parser parser;
    parser.RecordErrorsTo(&first);
    // The limit of binary files. The parser recurses, so the limit protects its stack from deep
    // files.
    parser.SetRecursionLimit(100);
    if (!parser.Parse(&stream, model.get())) {
      return rt::makeError("is not the text of an ONNX model: ", first.text);
    }
  } else if (!model->ParseFromZeroCopyStream(&stream)) {
    return rt::makeError("is not an ONNX model");
  }
  if (!model->has_graph()) {
    return rt::makeError("is not an ONNX model: it has no graph");
  }
  return model;
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
