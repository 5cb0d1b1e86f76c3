//===- ToyTable.cpp - the kernel table of the small executable --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/Toy.h"

// The symbol that the runtime looks for; the compiler's object files define the
// same.
extern "C" const weft::rt::KernelCode weft_kernels[];
const weft::rt::KernelCode weft_kernels[] = {
    weft::rt::kToyKernels[0], weft::rt::kToyKernels[1], weft::rt::kToyKernels[2],
    weft::rt::kToyKernels[3], weft::rt::kToyKernels[4],
};
