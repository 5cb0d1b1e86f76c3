//===- Parts.h - what the parts of the table share ------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The functions of the table by the real libraries; DriverTable.h says what each does.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_CUDA_PARTS_H
#define WEFT_RT_BACKENDS_CUDA_PARTS_H

#include "backends/cuda/Calls.h"

#include <atomic>
#include <memory>

namespace weft::rt::cuda {

using Result = DriverTable::Result;
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
  /// Had by the first matmul.
  cublasLtHandle_t matmuls = nullptr;
  std::shared_ptr<Communicators> communicators;
  /// Had by the first attention.
  AttentionLibrary *attention = nullptr;
  /// Had by the first graph: an entry that counts a word up.
  CUmodule counting = nullptr;
  CUfunction count = nullptr;
};

/// The device of a handle, on which the thread's calls of the driver are from here on.
Result enter(Handle handle, Device *&device);

template <typename T> Handle toHandle(T *pointer) {
  return reinterpret_cast<DriverTable::Handle>(pointer);
}
template <typename T> T *fromHandle(Handle handle) { return reinterpret_cast<T *>(handle); }

/// What a function of the driver gives on the device of a handle; `name` is the driver's for it.
template <auto function, typename... Arguments>
Result callDriver(Handle handle, const char *name, Arguments... arguments) {
  Device *device = nullptr;
  Result failed = enter(handle, device);
  return failed ? failed : resultOf((driver().*function)(arguments...), name);
}

/// Driver.cpp: devices, memory, streams, events, copies, modules and launches.
void addDriver(DriverTable &library);
/// Matmuls.cpp: matmuls.
void addMatmuls(DriverTable &library);
/// Graphs.cpp: graphs, and what they need in place of a write of the host's.
void addGraphs(DriverTable &library);
/// Communication.cpp: collectives between devices.
void addCommunication(DriverTable &library);

/// None so far.
std::shared_ptr<Communicators> makeCommunicators();
/// What NCCL may take of a device's memory for a world and what is split off it: connections and
/// their buffers. Some 1 GB on eight H100 and 1.6 GB on A100 (NVIDIA/nccl#1685, #864); it is not
/// told, and depends on what devices are connected by. All-to-alls of eight may take 3 GB more.
inline constexpr uint64_t kCommunicationBytes = uint64_t(3) << 29;
/// Attention.cpp, or where there is no cudnn_frontend NoAttention.cpp: attention.
void addAttention(DriverTable &library);

/// What a device keeps of the matmuls' library is given back.
Result closeMatmuls(Device &device);
/// The same of cuDNN.
Result closeAttention(Device &device);
/// The same of graphs.
Result closeGraphs(Device &device);

} // namespace weft::rt::cuda

#endif // WEFT_RT_BACKENDS_CUDA_PARTS_H
