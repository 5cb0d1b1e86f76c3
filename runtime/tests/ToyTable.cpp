//===- ToyTable.cpp - the kernel table of the small executable --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/Toy.h"

// The name under which the runtime looks for it; the compiler's object files define the same.
extern "C" const weft::rt::KernelFunction weft_kernels[];
const weft::rt::KernelFunction weft_kernels[] = {
    [](void *const *b, const int64_t *i, const int64_t *c) { weft::rt::kToyKernels[0](b, i, c); },
    [](void *const *b, const int64_t *i, const int64_t *c) { weft::rt::kToyKernels[1](b, i, c); },
    [](void *const *b, const int64_t *i, const int64_t *c) { weft::rt::kToyKernels[2](b, i, c); },
    [](void *const *b, const int64_t *i, const int64_t *c) { weft::rt::kToyKernels[3](b, i, c); },
    [](void *const *b, const int64_t *i, const int64_t *c) { weft::rt::kToyKernels[4](b, i, c); },
};
