//===- MakeToy.cpp - writes the small program as C++ source -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Does for the toy program what the compiler does for a model: emits the symbols
// that an executable needs besides the runtime library.
//
//===----------------------------------------------------------------------===//

#include "tests/Toy.h"

#include <cstdio>

int main() {
  std::vector<char> bytes = weft::rt::serialize(weft::rt::makeToy(2, 2));
  std::printf("#include <cstdint>\n"
              "extern \"C\" const char weft_program[];\n"
              "extern \"C\" const uint64_t weft_program_size;\n"
              "const uint64_t weft_program_size = %zu;\n"
              "const char weft_program[] = {",
              bytes.size());
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::printf("%s%d,", i % 24 == 0 ? "\n" : "", bytes[i]);
  }
  std::printf("};\n");
}
