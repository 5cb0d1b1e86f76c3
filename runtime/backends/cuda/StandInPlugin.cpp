//===- StandInPlugin.cpp - a stand-in for whole programs -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A program for CUDA devices that loads this in place of libweft-rt-cuda.so.1 runs on
// the host, with as many devices as it has ranks. Variables of the environment decide
// what it is like:
//
//   WEFT_STAND_IN_SEED          the order of work
//   WEFT_STAND_IN_DEVICES       how many there are, in place of one for each rank
//   WEFT_STAND_IN_MEMORY        bytes of each device
//   WEFT_STAND_IN_ARCHITECTURE  compute capability times ten
//   WEFT_STAND_IN_STUCK         D:N: on device D work N, counted from 0, does not end
//   WEFT_STAND_IN_SLOW          D:N:M: on device D each work from N on takes M milliseconds longer
//   WEFT_STAND_IN_ALONE         1: devices of other processes are taken to do as this one's does;
//                               for faults, as numbers mean nothing then
//   WEFT_STAND_IN_FAIL          F:N: call N of the table's function F fails, counted from 1; F may
//                               be "work", which fails when it is done
//   WEFT_STAND_IN_REFUSES_ATTENTION  why it does no attention; does it where this is empty
//
//===----------------------------------------------------------------------===//

#include "backends/cuda/StandIn.h"

#include "core/Text.h"

#include <cstdlib>
#include <initializer_list>
#include <sstream>

using namespace weft::rt;
using namespace weft::rt::cuda;

static std::unique_ptr<StandIn> standIn;

/// A variable of the environment, after WEFT_STAND_IN_; empty where there is none.
static std::string variable(const char *name) {
  const char *value = std::getenv(concat("WEFT_STAND_IN_", name).c_str());
  return value ? value : "";
}

/// Numbers with colons between them, in the place of those that are there.
static void readNumbers(const char *name, std::initializer_list<int64_t *> numbers) {
  std::istringstream in(variable(name));
  for (int64_t *number : numbers) {
    if (int64_t read = 0; in >> read) {
      *number = read;
    }
    in.get();
  }
}

static void standFor(const Program *program, const KernelCode *kernels) {
  StandInSettings settings;
  int64_t seed = 0, memory = int64_t(1) << 32, architecture = 90, slowness = 0;
  readNumbers("SEED", {&seed});
  readNumbers("MEMORY", {&memory});
  readNumbers("ARCHITECTURE", {&architecture});
  settings.seed = uint64_t(seed);
  settings.architecture = uint32_t(architecture);
  readNumbers("STUCK", {&settings.stuck.device, &settings.stuck.after});
  readNumbers("SLOW", {&settings.slow.device, &settings.slow.after, &slowness});
  settings.slowness = std::chrono::milliseconds(slowness);
  settings.isAlone = !variable("ALONE").empty();
  settings.devices = program->rankCount();
  readNumbers("DEVICES", {&settings.devices});
  settings.memoryBytes = uint64_t(memory);
  settings.pinnedBytes = uint64_t(1) << 32;
  settings.refusesAttention = variable("REFUSES_ATTENTION");
  settings.cutsKernels = false; // To have the bits of the host.
  standIn.reset();              // There is one at a time.
  standIn = std::make_unique<StandIn>(settings, Twins(*program, kernels));
  if (std::string fault = variable("FAIL"); !fault.empty()) {
    size_t colon = fault.find(':');
    standIn->failAt(fault.substr(0, colon), std::atoll(fault.c_str() + colon + 1), "it is lost");
  }
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
