//===- KernelRates.h - how fast compiled kernels are here ----------------===//
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
  /// Whether models are as small on devices as on the host, where kernels are then too short to say
  /// anything: for tests.
  bool isSmall = false;
};

/// Compiles two small models, one as GPT-2 is built and one as Llama is, for all devices of
/// `machine`, which is this one, lets each run some steps, and gives the rate of arithmetic of
/// every kind of kernel in them that does any, from the median times of its calls. Kernels of the
/// optimizer do not count: they go by memory. What fails in the compiler is printed to standard
/// error where it is found.
llvm::Expected<std::vector<desc::KernelRate>> measureKernels(const desc::MachineSpec &machine,
                                                             const KernelRequest &request);

} // namespace weft

#endif // WEFT_DRIVER_KERNELRATES_H
