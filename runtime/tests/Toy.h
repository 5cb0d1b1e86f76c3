//===- Toy.h - a small program made by hand ---------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A model with one parameter, "table" f64 [256], that learns the mean of the
// targets that follow each token:
//
//   loss = 1/(B S) sum over tokens of (table[token] - target/256)^2
//
// by SGD with momentum 0.9 and rate 4. On a mesh data x model, "data" cuts the
// batch and "model" the table; the program has all-reduces over each and both. An
// evaluation computes the loss alone.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_TESTS_TOY_H
#define WEFT_RT_TESTS_TOY_H

#include "weft-rt/Program.h"

namespace weft::rt {

inline constexpr int64_t kToyBatch = 8, kToySequence = 16, kToyVocabulary = 256;

/// An FP8 matmul, which no toy program has: E4M3, 16 x 16 x 16.
inline constexpr Matmul kToyBytes = {.type = ElementType::F8E4M3,
                                     .transposeB = true,
                                     .m = 16,
                                     .n = 16,
                                     .k = 16,
                                     .lda = 16,
                                     .ldb = 16,
                                     .ldc = 16};

/// Returns the program for a mesh of `data` x `model` ranks. REQUIRES: `data` divides 8, and
/// `model` divides 256.
Program makeToy(int64_t data, int64_t model);

/// Returns programs of two rank classes of `model` ranks. Each trains a table of its own, "table"
/// and "second", on the whole batch, by the sum of both gradients; the loss is the sum of both
/// losses.
Programs makeToyClasses(int64_t model);

/// The kernels' code, in the program's order. A rank whose number is in the environment variable
/// WEFT_TOY_HANG never returns from the first kernel of a step.
extern const KernelCode kToyKernels[];

/// Returns the table's values before the first step.
double toyInitial(uint64_t seed, int64_t token);

} // namespace weft::rt

#endif // WEFT_RT_TESTS_TOY_H
