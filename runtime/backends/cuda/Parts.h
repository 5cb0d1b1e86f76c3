//===- Parts.h - the parts of the driver table ----------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each file implements some functions of the table with the real libraries. DriverTable.h
// documents them.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_CUDA_PARTS_H
#define WEFT_RT_BACKENDS_CUDA_PARTS_H

#include "backends/cuda/Calls.h"

#include <atomic>
#include <memory>

namespace weft::rt::cuda {

using CallResult = DriverTable::Result;
using Handle = DriverTable::Handle;
using Address = DriverTable::Address;

struct Communicators;
struct AttentionLibrary;

/// An open device; its address is the handle.
struct Device {
  int64_t number = 0;
  CUdevice device = 0;
  CUcontext context = nullptr;
  /// Any thread may set it.
  std::atomic<bool> isGivenUp = false;
  /// See Plugin.cpp.
  bool isSealed = false;
  /// Made for the first matmul.
  cublasLtHandle_t matmuls = nullptr;
  std::shared_ptr<Communicators> communicators;
  /// Made for the first attention.
  AttentionLibrary *attention = nullptr;
  /// Loaded for the first graph: a kernel that adds 1 to a word.
  CUmodule counting = nullptr;
  CUfunction count = nullptr;
};

/// Finds the device of a handle, and makes it current for the thread's calls of the driver.
CallResult enter(Handle handle, Device *&device);

template <typename T> Handle toHandle(T *pointer) {
  return reinterpret_cast<DriverTable::Handle>(pointer);
}
template <typename T> T *fromHandle(Handle handle) { return reinterpret_cast<T *>(handle); }

/// Calls a function of the driver on the device of a handle; errors begin with `name`.
template <auto function, typename... Arguments>
CallResult callDriver(Handle handle, const char *name, Arguments... arguments) {
  Device *device = nullptr;
  CallResult failed = enter(handle, device);
  return failed ? failed : resultOf((driver().*function)(arguments...), name);
}

/// Driver.cpp: devices, memory, streams, events, copies, modules and launches.
void addDriver(DriverTable &library);
/// Matmuls.cpp: matmuls.
void addMatmuls(DriverTable &library);
/// Graphs.cpp: graphs, and `countProgress`.
void addGraphs(DriverTable &library);
/// Communication.cpp: collectives between devices.
void addCommunication(DriverTable &library);

/// Makes an empty set of communicators.
std::shared_ptr<Communicators> makeCommunicators();
/// The device memory that NCCL may take for a world and the communicators split off it: connections
/// and their buffers. About 1 GB on eight H100 and 1.6 GB on A100 (NVIDIA/nccl#1685, #864); NCCL
/// does not report it, and it depends on the links between devices. All-to-alls of eight ranks may
/// take 3 GB more.
inline constexpr uint64_t kCommunicationBytes = uint64_t(3) << 29;
/// Attention.cpp, or NoAttention.cpp in builds without cudnn_frontend: attention.
void addAttention(DriverTable &library);

/// Frees the device's objects of the library of matmuls.
CallResult closeMatmuls(Device &device);
/// Frees the device's objects of cuDNN.
CallResult closeAttention(Device &device);
/// Frees the device's objects for graphs.
CallResult closeGraphs(Device &device);

} // namespace weft::rt::cuda

#endif // WEFT_RT_BACKENDS_CUDA_PARTS_H
