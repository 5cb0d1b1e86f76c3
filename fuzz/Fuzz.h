//===- Fuzz.h - what every fuzz target has in common ----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A target is a file with the function below. It gives the bytes to one reader, and
// aborts, or lets a sanitizer abort, if the reader does what it must not. Errors
// that a reader reports are what it is there for.
//
// In an ordinary build a target runs over the files of its corpus, as a test. With
// WEFT_FUZZ it is a libFuzzer program, which makes up inputs of its own.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_FUZZ_FUZZ_H
#define WEFT_FUZZ_FUZZ_H

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

/// Always returns 0: every input is worth keeping.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/// Aborts if `condition`, which must hold for every input, does not.
inline void require(bool condition, const char *what) {
  if (!condition) {
    std::fprintf(stderr, "does not hold: %s\n", what);
    std::abort();
  }
}

#endif // WEFT_FUZZ_FUZZ_H
