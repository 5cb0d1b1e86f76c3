//===- MemoryKernels.cpp - loops that are bound by memory ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "calibrate/MemoryKernels.h"

// Programs are compiled for the machine's own vectors, so these are too; the right version is
// chosen when they are loaded.
#if defined(__x86_64__) && defined(__linux__)
#define WEFT_FOR_THIS_PROCESSOR __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define WEFT_FOR_THIS_PROCESSOR
#endif

WEFT_FOR_THIS_PROCESSOR
void weft::rt::calibrate::copyFloats(const float *__restrict from, float *__restrict to,
                                     int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    to[i] = from[i];
  }
}

WEFT_FOR_THIS_PROCESSOR
void weft::rt::calibrate::addFloats(const float *__restrict a, const float *__restrict b,
                                    float *__restrict to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    to[i] = a[i] + b[i];
  }
}

WEFT_FOR_THIS_PROCESSOR
float weft::rt::calibrate::sumFloats(const float *from, int64_t count) {
  constexpr int64_t kParts = 64; // Sums are not reordered by the compiler: these are the order.
  float parts[kParts] = {};
  int64_t whole = count / kParts * kParts;
  for (int64_t i = 0; i < whole; i += kParts) {
    for (int64_t j = 0; j < kParts; ++j) {
      parts[j] += from[i + j];
    }
  }
  float sum = 0;
  for (int64_t j = 0; j < kParts; ++j) {
    sum += parts[j];
  }
  for (int64_t i = whole; i < count; ++i) {
    sum += from[i];
  }
  return sum;
}
