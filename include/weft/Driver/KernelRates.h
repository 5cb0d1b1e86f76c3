//===- KernelRates.h - measures rates of compiled kernels ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DRIVER_KERNELRATES_H
#define WEFT_DRIVER_KERNELRATES_H

#include "weft/Description/Machine.h"
#include "weft/Pipeline/Target.h"

#include "llvm/Support/Error.h"

namespace weft {

struct KernelRequest {
  /// On CUDA devices models are trained in float32 and in bfloat16, on the host in float32 alone.
  TargetKind target = TargetKind::Host;
  int64_t steps = 60;
  /// For tests: models for devices are as small as those for the host. Their kernels are too short
  /// to measure anything.
  bool isSmall = false;
};

/// Measures how fast compiled kernels compute. Compiles two small models, like GPT-2 and like
/// Llama, for all devices of `machine`, which must be this machine, runs some steps of each, and
/// returns the rate of arithmetic of every kind of kernel, from the median times of its calls.
/// Kernels of the optimizer do not count, because memory limits them. The compiler prints its
/// errors to standard error.
llvm::Expected<std::vector<desc::KernelRate>> measureKernels(const desc::MachineSpec &machine,
                                                             const KernelRequest &request);

} // namespace weft

#endif // WEFT_DRIVER_KERNELRATES_H
