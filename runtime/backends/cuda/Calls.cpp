//===- Calls.cpp - functions of CUDA and its libraries, loaded on demand --===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/cuda/Calls.h"

#include <dlfcn.h>
#include <initializer_list>
#include <mutex>

using namespace weft::rt;
using namespace weft::rt::cuda;

namespace {

// The function's name after the headers' macros are expanded.
#define WEFT_NAME_OF(function) #function
#define WEFT_LOOK_UP(field, function)                                                              \
  if (!lookUp(library, WEFT_NAME_OF(function), calls.field, error)) {                              \
    return false;                                                                                  \
  }

template <typename Function>
bool lookUp(void *library, const char *name, Function &found, std::string &error) {
  found = reinterpret_cast<Function>(dlsym(library, name));
  return found || fail(error, dlerror());
}

/// "13.0".
std::string versionText(int version) { return concat(version / 1000, ".", version % 1000 / 10); }

/// The oldest supported driver: machine code of CUDA 13's assembler needs a driver of CUDA 13, and
/// its headers name functions that drivers before 12.8 lack. Checking the version gives an error
/// that tells the user what to install.
constexpr int kOldestDriver = 13000;
constexpr const char *kOldestRelease = "580";

bool fill(DriverCalls &calls, void *library, std::string &error) {
  int version = 0;
  if (!lookUp(library, "cuDriverGetVersion", calls.version, error)) {
    return false;
  }
  if (calls.version(&version) == CUDA_SUCCESS && version < kOldestDriver) {
    return fail(error, "it is for CUDA ", versionText(version), ", expected ",
                versionText(kOldestDriver), " or newer, as of driver ", kOldestRelease);
  }
  WEFT_DRIVER_FUNCTIONS(WEFT_LOOK_UP)
  return true;
}

bool fill(MatmulCalls &calls, void *library, std::string &error) {
  WEFT_MATMUL_FUNCTIONS(WEFT_LOOK_UP)
  return true;
}

bool fill(CommunicationCalls &calls, void *library, std::string &error) {
  WEFT_COMMUNICATION_FUNCTIONS(WEFT_LOOK_UP)
  return true;
}

/// Loads the first of `files` that can be loaded, and keeps it.
template <typename Calls>
bool load(std::initializer_list<const char *> files, const char *what, Calls &calls,
          std::string &error) {
  void *library = nullptr;
  std::string reasons;
  for (const char *file : files) {
    library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (library) {
      std::string missing;
      return fill(calls, library, missing) ||
             fail(error, "cannot use ", file, ", ", what, ": ", missing);
    }
    reasons += concat(reasons.empty() ? "" : "; ", dlerror());
  }
  return fail(error, "cannot load ", *files.begin(), ", ", what, ": ", reasons);
}

/// A library that is loaded once; after a failure the next call tries again.
template <typename Calls> struct Loaded {
  std::mutex mutex;
  Calls calls;
  bool isThere = false;

  const Calls *find(std::initializer_list<const char *> files, const char *what,
                    std::string &error) {
    std::lock_guard lock(mutex);
    isThere = isThere || load(files, what, calls, error);
    return isThere ? &calls : nullptr;
  }
};

Loaded<DriverCalls> loadedDriver;
Loaded<MatmulCalls> loadedMatmuls;
Loaded<CommunicationCalls> loadedCommunication;

} // namespace

const DriverCalls *cuda::findDriver(std::string &error) {
  return loadedDriver.find({"libcuda.so.1"}, "the CUDA driver", error);
}

const MatmulCalls *cuda::findMatmuls(std::string &error) {
  return loadedMatmuls.find({"libcublasLt.so.13", "libcublasLt.so.12"}, "CUDA's library of matmuls",
                            error);
}

const CommunicationCalls *cuda::findCommunication(std::string &error) {
  return loadedCommunication.find({"libnccl.so.2"}, "CUDA's library of collectives", error);
}

const DriverCalls &cuda::driver() { return loadedDriver.calls; }
const MatmulCalls &cuda::matmuls() { return loadedMatmuls.calls; }
const CommunicationCalls &cuda::communication() { return loadedCommunication.calls; }

static thread_local std::string told;
static thread_local bool mayTellOfMemory = false;

DriverTable::Result cuda::say(std::string text, bool mayLackMemory) {
  told = std::move(text);
  mayTellOfMemory = mayLackMemory;
  return told.c_str();
}

/// Searches the text, since NCCL has no code for it and cuDNN's errors are texts.
bool cuda::lacksMemory() {
  auto isIn = [](const char *words) { return told.find(words) != std::string::npos; };
  return mayTellOfMemory && (isIn("CUDA_ERROR_OUT_OF_MEMORY") || isIn("ALLOC_FAILED") ||
                             isIn("ALLOCATION_FAILED") || isIn("out of memory"));
}
