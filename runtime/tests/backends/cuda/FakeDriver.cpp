//===- FakeDriver.cpp - a CUDA driver without a device --------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/backends/cuda/FakeCuda.h"
#include "tests/backends/cuda/FakeFaults.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <cuda.h>
#include <string>

static std::string failing;
static CUresult failure = CUDA_SUCCESS;
static float now = 0;
static constexpr int kMostDevices = 8;
static char contexts[kMostDevices];
static thread_local int current = -1;
static int lastPriority = 0;

void weft_fake_fail(const char *function, int code) {
  failing = function;
  failure = CUresult(code);
}
int64_t weft_fake_left() { return fakeFaults.left; }
int weft_fake_current() { return current; }
int weft_fake_priority() { return lastPriority; }
void weft_fake_elapse(float milliseconds) { now += milliseconds; }

static bool fails(const char *function) {
  bool isMeant = failing == function;
  failing = isMeant ? "" : failing;
  return isMeant;
}

/// Returns the code that a test set for this function; without one runs `work` and succeeds.
template <typename Work> static CUresult answer(const char *function, Work work) {
  if (int code = fakeFaults.call(function)) {
    return CUresult(code);
  }
  if (fails(function)) {
    return failure;
  }
  work();
  return CUDA_SUCCESS;
}

template <typename T> static void make(T *made) {
  *made = reinterpret_cast<T>(new float(0));
  ++fakeFaults.left;
}
template <typename T> static void drop(T made) {
  delete reinterpret_cast<float *>(made);
  --fakeFaults.left;
}

static int deviceCount() {
  const char *other = std::getenv("WEFT_FAKE_DEVICES");
  return std::min(other ? std::atoi(other) : 2, kMostDevices);
}

static void *memory(CUdeviceptr address) { return reinterpret_cast<void *>(address); }

#define ERROR(name) {name, #name}
/// The errors that the driver's documentation lists for the functions that are called.
static constexpr struct {
  CUresult code;
  const char *name;
} kErrors[] = {ERROR(CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE),
               ERROR(CUDA_ERROR_DEINITIALIZED),
               ERROR(CUDA_ERROR_FUNCTION_NOT_LOADED),
               ERROR(CUDA_ERROR_ILLEGAL_ADDRESS),
               ERROR(CUDA_ERROR_INVALID_CONTEXT),
               ERROR(CUDA_ERROR_INVALID_DEVICE),
               ERROR(CUDA_ERROR_INVALID_HANDLE),
               ERROR(CUDA_ERROR_INVALID_IMAGE),
               ERROR(CUDA_ERROR_INVALID_PTX),
               ERROR(CUDA_ERROR_INVALID_VALUE),
               ERROR(CUDA_ERROR_JIT_COMPILER_NOT_FOUND),
               ERROR(CUDA_ERROR_LAUNCH_FAILED),
               ERROR(CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING),
               ERROR(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES),
               ERROR(CUDA_ERROR_LAUNCH_TIMEOUT),
               ERROR(CUDA_ERROR_NOT_FOUND),
               ERROR(CUDA_ERROR_NOT_INITIALIZED),
               ERROR(CUDA_ERROR_NOT_PERMITTED),
               ERROR(CUDA_ERROR_NOT_READY),
               ERROR(CUDA_ERROR_NOT_SUPPORTED),
               ERROR(CUDA_ERROR_NO_BINARY_FOR_GPU),
               ERROR(CUDA_ERROR_NO_DEVICE),
               ERROR(CUDA_ERROR_OUT_OF_MEMORY),
               ERROR(CUDA_ERROR_SHARED_OBJECT_INIT_FAILED),
               ERROR(CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND),
               ERROR(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD),
               ERROR(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH),
               ERROR(CUDA_ERROR_UNKNOWN),
               ERROR(CUDA_ERROR_UNSUPPORTED_LIMIT),
               ERROR(CUDA_ERROR_UNSUPPORTED_PTX_VERSION)};
#undef ERROR

extern "C" {

CUresult cuGetErrorName(CUresult code, const char **name) {
  if (int fault = fakeFaults.call(__func__)) {
    *name = nullptr;
    return CUresult(fault);
  }
  for (auto [known, text] : kErrors) {
    if (known == code) {
      *name = text;
      return CUDA_SUCCESS;
    }
  }
  *name = nullptr;
  return CUDA_ERROR_INVALID_VALUE;
}
CUresult cuGetErrorString(CUresult code, const char **text) {
  if (int fault = fakeFaults.call(__func__)) {
    *text = nullptr;
    return CUresult(fault);
  }
  const char *name = nullptr;
  *text = cuGetErrorName(code, &name) == CUDA_SUCCESS ? "in words" : nullptr;
  return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D *copy, CUstream) {
  return answer(__func__, [&] {
    for (size_t row = 0; row < copy->Height; ++row) {
      std::memcpy(static_cast<char *>(memory(copy->dstDevice)) + row * copy->dstPitch,
                  static_cast<char *>(memory(copy->srcDevice)) + row * copy->srcPitch,
                  copy->WidthInBytes);
    }
  });
}
CUresult cuMemsetD2D32Async(CUdeviceptr at, size_t pitch, unsigned value, size_t width,
                            size_t height, CUstream) {
  return answer(__func__, [&] {
    for (size_t row = 0; row < height; ++row) {
      std::fill_n(reinterpret_cast<unsigned *>(static_cast<char *>(memory(at)) + row * pitch),
                  width, value);
    }
  });
}

CUresult cuInit(unsigned) {
  return answer(__func__, [] {});
}
CUresult cuDriverGetVersion(int *version) {
  // Each user asks right after loading.
  const char *other = std::getenv("WEFT_FAKE_DRIVER_VERSION");
  return answer(__func__, [&] { *version = other ? std::atoi(other) : 13010; });
}
CUresult cuDeviceGetCount(int *count) {
  return answer(__func__, [&] { *count = deviceCount(); });
}
CUresult cuDeviceGet(CUdevice *device, int number) {
  if (number < 0 || number >= deviceCount()) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return answer(__func__, [&] { *device = number; });
}
CUresult cuDeviceGetName(char *name, int, CUdevice) {
  return answer(__func__, [&] { std::strcpy(name, "Fake"); });
}
CUresult cuDeviceGetUuid(CUuuid *identity, CUdevice device) {
  return answer(__func__, [&] {
    std::fill(std::begin(identity->bytes), std::end(identity->bytes), char(device));
  });
}
CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice) {
  return answer(__func__, [&] {
    *value = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR   ? 12
             : attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR ? 1
                                                                         : 132;
  });
}
CUresult cuDeviceTotalMem(size_t *bytes, CUdevice) {
  return answer(__func__, [&] { *bytes = size_t(80) << 30; });
}
CUresult cuMemGetInfo(size_t *unused, size_t *all) {
  return answer(__func__, [&] {
    *unused = size_t(79) << 30;
    *all = size_t(80) << 30;
  });
}
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  return answer(__func__, [&] {
    *context = reinterpret_cast<CUcontext>(&contexts[device]);
    ++fakeFaults.left;
  });
}
CUresult cuDevicePrimaryCtxRelease(CUdevice) {
  return answer(__func__, [&] { --fakeFaults.left; });
}
CUresult cuCtxSetCurrent(CUcontext context) {
  return answer(__func__, [&] {
    current = context ? int(reinterpret_cast<char *>(context) - contexts) : -1;
  });
}
static size_t stackBytes = 1024;
CUresult cuCtxGetLimit(size_t *value, CUlimit) {
  return answer(__func__, [&] { *value = stackBytes; });
}
CUresult cuCtxSetLimit(CUlimit, size_t value) {
  return answer(__func__, [&] { stackBytes = value; });
}

CUresult cuMemAlloc(CUdeviceptr *address, size_t bytes) {
  return answer(__func__, [&] {
    *address = reinterpret_cast<CUdeviceptr>(std::malloc(bytes));
    ++fakeFaults.left;
  });
}
CUresult cuMemFree(CUdeviceptr address) {
  return answer(__func__, [&] {
    std::free(memory(address));
    --fakeFaults.left;
  });
}
CUresult cuMemHostAlloc(void **place, size_t bytes, unsigned) {
  return answer(__func__, [&] {
    *place = std::malloc(bytes);
    ++fakeFaults.left;
  });
}
CUresult cuMemFreeHost(void *place) {
  return answer(__func__, [&] {
    std::free(place);
    --fakeFaults.left;
  });
}

CUresult cuStreamCreate(CUstream *stream, unsigned) {
  return answer(__func__, [&] { make(stream); });
}
CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest) {
  return answer(__func__, [&] {
    *least = 0;
    *greatest = -5;
  });
}
CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned, int priority) {
  return answer(__func__, [&] {
    make(stream);
    lastPriority = priority;
  });
}
CUresult cuStreamDestroy(CUstream stream) {
  return answer(__func__, [&] { drop(stream); });
}
CUresult cuStreamWaitEvent(CUstream, CUevent, unsigned) {
  return answer(__func__, [] {});
}
CUresult cuEventCreate(CUevent *event, unsigned) {
  return answer(__func__, [&] { make(event); });
}
CUresult cuEventDestroy(CUevent event) {
  return answer(__func__, [&] { drop(event); });
}
CUresult cuEventRecord(CUevent event, CUstream) {
  return answer(__func__, [&] { *reinterpret_cast<float *>(event) = now; });
}
CUresult cuEventQuery(CUevent) {
  return answer(__func__, [] {});
}
CUresult cuEventSynchronize(CUevent) {
  return answer(__func__, [] {});
}
CUresult cuEventElapsedTime(float *took, CUevent from, CUevent to) {
  return answer(__func__,
                [&] { *took = *reinterpret_cast<float *>(to) - *reinterpret_cast<float *>(from); });
}

CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *host, size_t bytes, CUstream) {
  return answer(__func__, [&] { std::memcpy(memory(to), host, bytes); });
}
CUresult cuMemcpyDtoHAsync(void *host, CUdeviceptr from, size_t bytes, CUstream) {
  return answer(__func__, [&] { std::memcpy(host, memory(from), bytes); });
}
CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream) {
  return answer(__func__, [&] { std::memcpy(memory(to), memory(from), bytes); });
}
CUresult cuMemsetD8Async(CUdeviceptr at, unsigned char value, size_t bytes, CUstream) {
  return answer(__func__, [&] { std::memset(memory(at), value, bytes); });
}
CUresult cuMemsetD2D8Async(CUdeviceptr at, size_t pitch, unsigned char value, size_t width,
                           size_t height, CUstream) {
  return answer(__func__, [&] {
    for (size_t row = 0; row < height; ++row) {
      std::memset(memory(at + row * pitch), value, width);
    }
  });
}

CUresult cuStreamWriteValue32(CUstream, CUdeviceptr word, cuuint32_t value, unsigned) {
  return answer(__func__, [&] { *static_cast<uint32_t *>(memory(word)) = value; });
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *bytes, unsigned count,
                            CUjit_option *options, void **values) {
  for (unsigned i = 0; std::strcmp(static_cast<const char *>(bytes), "bad") == 0 && i < count;
       ++i) {
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER) {
      std::strcpy(static_cast<char *>(values[i]), "line 1: bad");
    }
  }
  return answer(__func__, [&] { make(module); });
}
CUresult cuModuleUnload(CUmodule module) {
  return answer(__func__, [&] { drop(module); });
}
CUresult cuModuleGetFunction(CUfunction *entry, CUmodule, const char *name) {
  bool counts = std::strcmp(name, "weft_count") == 0;
  // Phases of a compiled program's kernels, which do nothing.
  bool isPhase = std::strstr(name, "_phase_") && std::getenv("WEFT_FAKE_PHASES");
  if (!counts && !isPhase && std::strcmp(name, "store") != 0) {
    return CUDA_ERROR_NOT_FOUND;
  }
  return answer(__func__, [&] {
    *entry = counts    ? reinterpret_cast<CUfunction>(weft_fake_left)
             : isPhase ? reinterpret_cast<CUfunction>(weft_fake_current)
                       : reinterpret_cast<CUfunction>(weft_fake_elapse);
  });
}
CUresult cuFuncLoad(CUfunction) {
  return answer(__func__, [] {});
}
CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction) {
  return answer(__func__,
                [&] { *value = attribute == CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES ? 4096 : 0; });
}

/// Work is done while it is captured; a graph only counts its launches.
CUresult cuStreamBeginCapture_v2(CUstream, CUstreamCaptureMode mode) {
  return mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL ? answer(__func__, [] {})
                                                     : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuStreamEndCapture(CUstream, CUgraph *graph) {
  return answer(__func__, [&] { make(graph); });
}
CUresult cuGraphInstantiateWithFlags(CUgraphExec *made, CUgraph, unsigned long long flags) {
  if (flags != CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return answer(__func__, [&] { make(made); });
}
CUresult cuGraphDestroy(CUgraph graph) {
  return answer(__func__, [&] { drop(graph); });
}
CUresult cuGraphUpload(CUgraphExec, CUstream) {
  return answer(__func__, [] {});
}
CUresult cuGraphLaunch(CUgraphExec graph, CUstream) {
  return answer(__func__, [&] { ++*reinterpret_cast<float *>(graph); });
}
CUresult cuGraphExecDestroy(CUgraphExec graph) {
  return answer(__func__, [&] { drop(graph); });
}

/// Stores blocks, threads and the second argument where the first one says; of the entry that
/// counts, adds 1 there. Phases do nothing.
CUresult cuLaunchKernel(CUfunction entry, unsigned blocks, unsigned, unsigned, unsigned threads,
                        unsigned, unsigned, unsigned, CUstream, void **arguments, void **) {
  if (entry == reinterpret_cast<CUfunction>(weft_fake_left)) {
    return answer(__func__, [&] { ++**static_cast<uint32_t **>(arguments[0]); });
  }
  if (entry == reinterpret_cast<CUfunction>(weft_fake_current)) {
    return answer(__func__, [] {});
  }
  auto *to = *static_cast<uint64_t **>(arguments[0]);
  uint64_t stored[] = {blocks, threads, *static_cast<uint64_t *>(arguments[1])};
  return answer(__func__, [&] { std::memcpy(to, stored, sizeof stored); });
}
}
