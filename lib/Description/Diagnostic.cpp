//===- Diagnostic.cpp - errors in descriptions, with their places ---------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Description/Diagnostic.h"

namespace weft::desc {

std::string Diagnostic::str() const {
  std::string text = location.file;
  if (location.line > 0) {
    text += ":" + std::to_string(location.line);
    text += location.column > 0 ? ":" + std::to_string(location.column) : "";
  }
  if (!text.empty()) {
    text += ": ";
  }
  if (!field.empty()) {
    text += field + ": ";
  }
  return text + message;
}

std::string str(const Diagnostics &diagnostics) {
  std::string text;
  for (const Diagnostic &diagnostic : diagnostics) {
    text += diagnostic.str() + "\n";
  }
  return text;
}

} // namespace weft::desc
