//===- Fuzz.h - the interface of all fuzz targets -------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A target is a file with the function below, which gives the bytes to one reader. It
// aborts, or a sanitizer does, if the reader misbehaves. Errors that the reader reports
// are correct behaviour.
//
// In an ordinary build a target is a test that runs over the files of its corpus. With
// WEFT_FUZZ it is a libFuzzer program, which makes new inputs.
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

/// Aborts if `condition` is false, which must hold for every input.
inline void require(bool condition, const char *what) {
  if (!condition) {
    std::fprintf(stderr, "does not hold: %s\n", what);
    std::abort();
  }
}

#endif // WEFT_FUZZ_FUZZ_H
