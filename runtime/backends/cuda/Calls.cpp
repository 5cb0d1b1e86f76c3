//===- Calls.cpp - functions of CUDA and its libraries, loaded on demand --===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/cuda/Calls.h"

#include "backends/cuda/LibraryNames.h"

#include <mutex>

using namespace weft::rt;
using namespace weft::rt::cuda;

namespace {

// The function's name after the headers' macros are expanded.
#define WEFT_NAME_OF(function) #function
#define WEFT_LOOK_UP(field, function)                                                              \
  if (Status status = lookUp(library, WEFT_NAME_OF(function), calls.field); !status) {             \
    return status;                                                                                 \
  }

template <typename Function> Status lookUp(void *library, const char *name, Function &found) {
  found = reinterpret_cast<Function>(dlsym(library, name));
  return found ? Status() : makeError(dlerror());
}

/// "13.0".
std::string versionText(int version) { return concat(version / 1000, ".", version % 1000 / 10); }

/// The oldest supported driver: machine code of CUDA 13's assembler needs a driver of CUDA 13, and
/// its headers name functions that drivers before 12.8 lack. Checking the version gives an error
/// that tells the user what to install.
constexpr int kOldestDriver = 13000;
constexpr const char *kOldestRelease = "580";

Status fill(DriverCalls &calls, void *library) {
  int version = 0;
  if (Status status = lookUp(library, "cuDriverGetVersion", calls.version); !status) {
    return status;
  }
  if (calls.version(&version) == CUDA_SUCCESS && version < kOldestDriver) {
    return makeError("it is for CUDA ", versionText(version), ", expected ",
                     versionText(kOldestDriver), " or newer, as of driver ", kOldestRelease);
  }
  WEFT_DRIVER_FUNCTIONS(WEFT_LOOK_UP)
  return {};
}

Status fill(MatmulCalls &calls, void *library) {
  WEFT_MATMUL_FUNCTIONS(WEFT_LOOK_UP)
  return {};
}

Status fill(CommunicationCalls &calls, void *library) {
  WEFT_COMMUNICATION_FUNCTIONS(WEFT_LOOK_UP)
  return {};
}

/// Loads the library, keeps it, and finds its functions.
template <typename Calls> Status load(const LibraryName &name, Calls &calls) {
  Result<LoadedLibrary> library = openLibrary(name);
  if (!library) {
    return library.error();
  }
  Status status = fill(calls, library->handle);
  return status ? status
                : makeError("cannot use ", library->file, ", ", name.what, ": ",
                            status.error().message);
}

/// A library that is loaded once; after a failure the next call tries again.
template <typename Calls> struct Loaded {
  std::mutex mutex;
  Calls calls;
  bool isThere = false;

  Status find(const LibraryName &name) {
    std::lock_guard lock(mutex);
    Status status = isThere ? Status() : load(name, calls);
    isThere = bool(status);
    return status;
  }
};

Loaded<DriverCalls> loadedDriver;
Loaded<MatmulCalls> loadedMatmuls;
Loaded<CommunicationCalls> loadedCommunication;

} // namespace

Status cuda::findDriver() { return loadedDriver.find(kDriver); }
Status cuda::findMatmuls() { return loadedMatmuls.find(kMatmuls); }
Status cuda::findCommunication() { return loadedCommunication.find(kCommunication); }

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
