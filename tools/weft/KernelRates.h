//===- KernelRates.h - how fast compiled kernels are here ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_TOOLS_WEFT_KERNELRATES_H
#define WEFT_TOOLS_WEFT_KERNELRATES_H

#include "weft/Description/Machine.h"

#include "llvm/Support/Error.h"

namespace weft {

/// Compiles two small models, one as GPT-2 is built and one as Llama is, for all devices of
/// `machine`, which is this one, lets each run `steps` steps, and gives the rate of arithmetic of
/// every kind of kernel in them that does any, in float32, from the median times of its calls.
/// Kernels of the optimizer do not count: they go by memory. What fails in the compiler is printed
/// to standard error where it is found.
llvm::Expected<std::vector<desc::KernelRate>> measureKernels(const desc::MachineSpec &machine,
                                                             int64_t steps);

} // namespace weft

#endif // WEFT_TOOLS_WEFT_KERNELRATES_H
