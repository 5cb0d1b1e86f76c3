//===- Schema.h - the protobuf messages of ONNX ---------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// From Debian's libonnx-dev. Fields of newer versions of the format are kept by
// protobuf and not looked at.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_ONNX_SCHEMA_H
#define WEFT_LIB_ONNX_SCHEMA_H

#define ONNX_ML 1
#include <onnx/onnx_pb.h>

#include <optional>

#include "weft/Onnx/Constant.h"

namespace weft::onnx {

/// The type that an ONNX file numbers so; none where we do not read it.
std::optional<ElementType> elementTypeOf(int number);
/// "FLOAT16": what ONNX calls it.
std::string typeName(int number);

} // namespace weft::onnx

#endif // WEFT_LIB_ONNX_SCHEMA_H
