//===- Devices.h - executors on this machine's CUDA devices ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_CUDA_DEVICES_H
#define WEFT_RT_BACKENDS_CUDA_DEVICES_H

#include "backends/cuda/DriverTable.h"
#include "execution/Executor.h"
#include "weft-rt/DeviceImage.h"
#include "weft-rt/Status.h"

#include <span>

namespace weft::rt::cuda {

struct CudaOptions;

/// Returns the table of `libweft-rt-cuda.so.1`, or of the file that the environment variable
/// WEFT_RT_CUDA names. Fails if it cannot be loaded or has another version.
Result<const DriverTable *> loadLibrary();

/// Returns a function that makes executors on devices. Each rank of this process gets a device of
/// its own, by the rank's number on this machine. Fails if there is no library, no driver, or fewer
/// devices than ranks. If `options` name no cache file, uses the one in the user's cache folder,
/// except with a simulator. All arguments but `options` must outlive the executors.
Result<MakeExecutor> makeExecutors(std::span<const Program> programs, const KernelCode *kernels,
                                   std::span<const DeviceImage> images, CudaOptions options);

} // namespace weft::rt::cuda

#endif // WEFT_RT_BACKENDS_CUDA_DEVICES_H
