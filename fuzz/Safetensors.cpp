//===- Safetensors.cpp - safetensors files --------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Fuzz.h"

#include "support/Safetensors.h"
#include "tests/TemporaryFolder.h"

using namespace weft::rt;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const TemporaryFolder folder;
  folder.write("file", std::string(reinterpret_cast<const char *>(data), size));
  SafetensorsFile file;
  if (Status status = file.open(folder.file("file")); !status) {
    require(!status.error().message.empty(), "an error says something");
    return 0;
  }
  uint64_t bytes = 0, sum = 0;
  for (const auto &[name, tensor] : file.tensors) {
    bytes += tensor.data.size();
    for (char byte : tensor.data) { // A sanitizer sees what lies outside.
      sum += uint8_t(byte);
    }
  }
  require(sum <= 255 * bytes, "bytes are bytes");
  require(bytes <= size, "tensors lie inside the file and do not overlap");
  return 0;
}
