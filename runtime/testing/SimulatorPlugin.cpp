//===- SimulatorPlugin.cpp - a simulator for whole programs ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A program for CUDA devices that loads this library in place of libweft-rt-cuda.so.1 runs
// on the host, by default with as many devices as it has ranks. Environment variables set up
// the devices:
//
//   WEFT_SIMULATOR_SEED          the order of work
//   WEFT_SIMULATOR_DEVICES       the number of devices; without it, one for each rank
//   WEFT_SIMULATOR_MEMORY        bytes of each device
//   WEFT_SIMULATOR_LOCAL         N:B: entries with N in their names use B bytes of local memory
//   WEFT_SIMULATOR_TAKES         F:B: each call of the table's F takes B bytes of its device
//   WEFT_SIMULATOR_ARCHITECTURE  compute capability times ten
//   WEFT_SIMULATOR_STUCK         D:N: on device D work N, counted from 0, hangs
//   WEFT_SIMULATOR_SLOW          D:N:M: on device D each work from N on takes M milliseconds longer
//   WEFT_SIMULATOR_ALONE         1: simulates other processes' devices with the data of this one's;
//                               for tests of faults, since results are meaningless
//   WEFT_SIMULATOR_FAIL          F:N: call N of the table's function F fails, counted from 1; F may
//                               be "work", which fails when it is done
//   WEFT_SIMULATOR_CALLS         FILE: at the end, writes the number of calls of each function;
//                               nothing is computed, so programs may have any size
//   WEFT_SIMULATOR_LOADS         1: loads the driver and CUDA's libraries by name before the calls
//                               that need them, and fails as libweft-rt-cuda.so.1 does if one is
//                               missing; nothing in them is called
//   WEFT_SIMULATOR_REFUSES_ATTENTION  the reason to refuse all attention; empty to run it
//
//===----------------------------------------------------------------------===//

#include "testing/Simulator.h"

#include "backends/cuda/LibraryNames.h"
#include "support/Text.h"

#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <sstream>

using namespace weft::rt;
using namespace weft::rt::cuda;

static std::unique_ptr<Simulator> simulator;

static std::string variable(const char *name);

/// Writes the file of WEFT_SIMULATOR_CALLS; called at the end of the process.
static void writeCalls() {
  std::ofstream file(variable("CALLS"));
  for (const auto &[function, count] : simulator->allCalls()) {
    file << function << " " << count << "\n";
  }
}

/// Returns the environment variable WEFT_SIMULATOR_`name`; empty if it is not set.
static std::string variable(const char *name) {
  const char *value = std::getenv(concat("WEFT_SIMULATOR_", name).c_str());
  return value ? value : "";
}

/// Overwrites numbers by the colon-separated ones of a variable.
static void readNumbers(const char *name, std::initializer_list<int64_t *> numbers) {
  std::istringstream in(variable(name));
  for (int64_t *number : numbers) {
    if (int64_t read = 0; in >> read) {
      *number = read;
    }
    in.get();
  }
}

/// Overwrites a name and a number by those of a variable, "NAME:NUMBER".
static void readNamed(const char *variableName, std::string &name, uint64_t &number) {
  std::string text = variable(variableName);
  if (size_t colon = text.find(':'); colon != std::string::npos) {
    name = text.substr(0, colon);
    number = std::strtoull(&text[colon + 1], nullptr, 10);
  }
}

static void standFor(const Program *programs, size_t count, const KernelCode *kernels) {
  SimulatorSettings settings;
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
  settings.devices = programs->rankCount();
  readNumbers("DEVICES", {&settings.devices});
  settings.memoryBytes = uint64_t(memory);
  settings.pinnedBytes = uint64_t(1) << 32;
  settings.isIdle = !variable("CALLS").empty();
  settings.refusesAttention = variable("REFUSES_ATTENTION");
  readNamed("LOCAL", settings.local.name, settings.local.bytes);
  readNamed("TAKES", settings.taking.function, settings.taking.bytes);
  settings.cutsKernels = false; // To have the bits of the host.
  simulator.reset();            // There is one at a time.
  simulator = std::make_unique<Simulator>(settings, Counterparts({programs, count}, kernels));
  if (settings.isIdle) {
    std::atexit(writeCalls);
  }
  std::string fault;
  uint64_t call = 0;
  readNamed("FAIL", fault, call);
  if (call > 0) {
    simulator->failAt(fault, int64_t(call), "it is lost");
  }
}

/// The simulator's own table.
static DriverTable simulated;

/// A function of the table that first loads the library `name`.
template <auto function, const LibraryName &name> struct Loading;
template <typename... Arguments, DriverTable::Result (*DriverTable::*function)(Arguments...),
          const LibraryName &name>
struct Loading<function, name> {
  static DriverTable::Result run(Arguments... arguments) {
    static thread_local std::string reason;
    Result<LoadedLibrary> library = openLibrary(name);
    reason = library ? "" : library.error().message;
    return library ? (simulated.*function)(arguments...) : reason.c_str();
  }
};

/// A missing library of attention is no error but a refusal.
static DriverTable::Result prepareAttention(DriverTable::Handle device, const Attention *attention,
                                            const AttentionPart *part, bool isDeterministic,
                                            DriverTable::Handle *prepared, const char **refusal) {
  static thread_local std::string reason;
  if (Result<LoadedLibrary> library = openLibrary(kAttention); !library) {
    reason = library.error().message;
    *prepared = 0;
    *refusal = reason.c_str();
    return nullptr;
  }
  return simulated.prepareAttention(device, attention, part, isDeterministic, prepared, refusal);
}

static DriverTable makeLibrary() {
  simulated = Simulator({}, {}).library();
  DriverTable library = simulated;
  library.standFor = standFor;
  if (!variable("LOADS").empty()) {
    library.countDevices = Loading<&DriverTable::countDevices, kDriver>::run;
    library.open = Loading<&DriverTable::open, kDriver>::run;
    library.nameMatmuls = Loading<&DriverTable::nameMatmuls, kMatmuls>::run;
    library.prepareMatmul = Loading<&DriverTable::prepareMatmul, kMatmuls>::run;
    library.makeWorldId = Loading<&DriverTable::makeWorldId, kCommunication>::run;
    library.join = Loading<&DriverTable::join, kCommunication>::run;
    library.prepareAttention = prepareAttention;
  }
  return library;
}

const DriverTable *weft_rt_cuda(uint32_t version) {
  static const DriverTable library = makeLibrary();
  return version == DriverTable::kVersion ? &library : nullptr;
}
