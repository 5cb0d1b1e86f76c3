//===- Schema.h - the protobuf messages of ONNX ---------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The messages are those of Debian's libonnx-dev. Protobuf keeps fields of newer versions of the
// format; Weft ignores them.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_ONNX_SCHEMA_H
#define WEFT_LIB_ONNX_SCHEMA_H

#define ONNX_ML 1
#include <onnx/onnx_pb.h>

#include <optional>

#include "weft/Onnx/Constant.h"

namespace weft::onnx {

/// Returns the element type of this number in ONNX files; none if Weft does not support it.
std::optional<ElementType> elementTypeOf(int number);
/// Returns ONNX's name of the type: "FLOAT16".
std::string typeName(int number);

} // namespace weft::onnx

#endif // WEFT_LIB_ONNX_SCHEMA_H
