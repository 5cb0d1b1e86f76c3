//===- FakeDriver.cpp - a CUDA driver without a device --------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/backends/cuda/FakeCuda.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <cuda.h>
#include <string>

static std::string failing;
static CUresult failure = CUDA_SUCCESS;
static int64_t left = 0;
static float now = 0;
static char contexts[2];
static thread_local int current = -1;
static int lastPriority = 0;

void weft_fake_fail(const char *function, int code) {
  failing = function;
  failure = CUresult(code);
}
int64_t weft_fake_left() { return left; }
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
  if (fails(function)) {
    return failure;
  }
  work();
  return CUDA_SUCCESS;
}

template <typename T> static void make(T *made) {
  *made = reinterpret_cast<T>(new float(0));
  ++left;
}
template <typename T> static void drop(T made) {
  delete reinterpret_cast<float *>(made);
  --left;
}

static void *memory(CUdeviceptr address) { return reinterpret_cast<void *>(address); }

extern "C" {

CUresult cuGetErrorName(CUresult code, const char **name) {
  *name = code == CUDA_ERROR_OUT_OF_MEMORY     ? "CUDA_ERROR_OUT_OF_MEMORY"
          : code == CUDA_ERROR_INVALID_VALUE   ? "CUDA_ERROR_INVALID_VALUE"
          : code == CUDA_ERROR_ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS"
          : code == CUDA_ERROR_NOT_FOUND       ? "CUDA_ERROR_NOT_FOUND"
                                               : nullptr;
  return *name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuGetErrorString(CUresult code, const char **text) {
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
  return answer(__func__, [&] { *count = 2; });
}
CUresult cuDeviceGet(CUdevice *device, int number) {
  *device = number;
  return number >= 0 && number < 2 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
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
    ++left;
  });
}
CUresult cuDevicePrimaryCtxRelease(CUdevice) {
  return answer(__func__, [&] { --left; });
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
    ++left;
  });
}
CUresult cuMemFree(CUdeviceptr address) {
  return answer(__func__, [&] {
    std::free(memory(address));
    --left;
  });
}
CUresult cuMemHostAlloc(void **place, size_t bytes, unsigned) {
  return answer(__func__, [&] {
    *place = std::malloc(bytes);
    ++left;
  });
}
CUresult cuMemFreeHost(void *place) {
  return answer(__func__, [&] {
    std::free(place);
    --left;
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
  *entry = counts ? reinterpret_cast<CUfunction>(weft_fake_left)
                  : reinterpret_cast<CUfunction>(weft_fake_elapse);
  return counts || std::strcmp(name, "store") == 0 ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
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
/// counts, adds 1 there.
CUresult cuLaunchKernel(CUfunction entry, unsigned blocks, unsigned, unsigned, unsigned threads,
                        unsigned, unsigned, unsigned, CUstream, void **arguments, void **) {
  if (entry == reinterpret_cast<CUfunction>(weft_fake_left)) {
    return answer(__func__, [&] { ++**static_cast<uint32_t **>(arguments[0]); });
  }
  auto *to = *static_cast<uint64_t **>(arguments[0]);
  uint64_t stored[] = {blocks, threads, *static_cast<uint64_t *>(arguments[1])};
  return answer(__func__, [&] { std::memcpy(to, stored, sizeof stored); });
}
}
