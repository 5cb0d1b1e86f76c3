//===- StandInPlugin.cpp - a stand-in for whole programs -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A program for CUDA devices that loads this in place of libweft-rt-cuda.so.1 runs on
// the host, with as many devices as it has ranks. The environment variable
// WEFT_STAND_IN_SEED decides the order of work; where WEFT_STAND_IN_REFUSES_ATTENTION is
// set, that is why it does no attention.
//
//===----------------------------------------------------------------------===//

#include "backends/cuda/StandIn.h"

#include <cstdlib>

using namespace weft::rt;
using namespace weft::rt::cuda;

static std::unique_ptr<StandIn> standIn;

static void standFor(const Program *program, const KernelCode *kernels) {
  const char *seed = std::getenv("WEFT_STAND_IN_SEED");
  StandInSettings settings;
  settings.seed = seed ? std::strtoull(seed, nullptr, 10) : 0;
  settings.devices = program->rankCount();
  settings.memoryBytes = settings.pinnedBytes = uint64_t(1) << 32;
  if (const char *refusal = std::getenv("WEFT_STAND_IN_REFUSES_ATTENTION")) {
    settings.refusesAttention = refusal;
  }
  settings.cutsKernels = false; // To have the bits of the host.
  standIn = std::make_unique<StandIn>(settings, Twins(*program, kernels));
}

static Library makeLibrary() {
  Library library = StandIn({}, {}).library();
  library.standFor = standFor;
  return library;
}

const Library *weft_rt_cuda(uint32_t version) {
  static const Library library = makeLibrary();
  return version == Library::kVersion ? &library : nullptr;
}
