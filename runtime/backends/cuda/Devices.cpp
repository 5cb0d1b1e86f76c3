//===- Devices.cpp - executors on this machine's CUDA devices --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/cuda/Devices.h"

#include "backends/Launcher.h"
#include "backends/LoadTable.h"
#include "backends/PluginFile.h"
#include "backends/cuda/AlgorithmCache.h"
#include "backends/cuda/CudaExecutor.h"

#include <cstdlib>

using namespace weft::rt;
using namespace weft::rt::cuda;

static const char *const kFile = "libweft-rt-cuda.so.1";

Result<const DriverTable *> weft::rt::cuda::loadLibrary() {
  Result<std::string> file = findPlugin("WEFT_RT_CUDA", kFile);
  void *handle = file ? dlopen(file->c_str(), RTLD_NOW) : nullptr;
  if (!handle) {
    return makeError("a program for CUDA devices needs ", kFile,
                     ", which the compiler's build makes if CUDA's headers are installed, found by "
                     "the program's run path, LD_LIBRARY_PATH or WEFT_RT_CUDA: ",
                     file ? std::string(dlerror()) : file.error().message);
  }
  return findTable<DriverTable>(handle, *file, "weft_rt_cuda", "programs for CUDA devices need");
}

/// Returns true if processes may share devices, for tests on machines with few devices. Threads
/// cannot share a device.
static bool sharesDevices() {
  const char *wish = std::getenv("WEFT_SHARE_DEVICE");
  return wish && std::string_view(wish) == "1";
}

Result<MakeExecutor> weft::rt::cuda::makeExecutors(std::span<const Program> programs,
                                                   const KernelCode *kernels,
                                                   std::span<const DeviceImage> images,
                                                   CudaOptions options) {
  Result<const DriverTable *> loaded = loadLibrary();
  if (!loaded) {
    return loaded.error();
  }
  const DriverTable *library = *loaded;
  if (library->standFor) {
    library->standFor(programs.data(), programs.size(), kernels);
  }
  int64_t count = 0;
  if (DriverTable::Result reason = library->countDevices(&count)) {
    return makeError("this program is for CUDA devices: ", reason);
  }
  std::optional<mpi::Launcher> launcher = mpi::findLauncher();
  bool isAlone = !launcher || launcher->size == 1;
  // A launcher may show each process only its own device, as srun --gpus-per-task does. If several
  // processes see the same one, `DeviceCollectives::join` fails.
  bool isOwn = !isAlone && count == 1;
  if (!isAlone && !isOwn && !launcher->localRank) {
    return makeError(launcher->name,
                     " does not give this process's number on this machine: expected ",
                     launcher->localRankName);
  }
  int64_t own = isAlone || isOwn ? 0 : *launcher->localRank;
  if (sharesDevices() && count > 0) { // Processes take turns at devices.
    own %= count;
  }
  int64_t last = isAlone ? programs.front().rankCount() - 1 : own;
  if (last >= count) {
    return makeError("this program needs a CUDA device for each of its ranks: expected ", last + 1,
                     " or more on this machine, got ", count);
  }
  if (options.cacheFile.empty() && !library->standFor) {
    options.cacheFile = defaultCacheFile();
  }
  options.sharesDevices = sharesDevices();
  return MakeExecutor([=](const Program &program, const KernelCode *kernels, int64_t rank,
                          int64_t) -> std::unique_ptr<Executor> {
    return std::make_unique<CudaExecutor>(program, kernels, rank, *library, isAlone ? rank : own,
                                          images, options);
  });
}
