//===- Calls.h - functions of CUDA and its libraries, loaded on demand ----===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The driver, cuBLASLt and NCCL are loaded at run time, not linked, so that Weft reports a
// missing one with an error of its own. Each is loaded once; the next call repeats a load
// that failed. Any thread may call these functions.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_CUDA_CALLS_H
#define WEFT_RT_BACKENDS_CUDA_CALLS_H

#include "backends/cuda/DriverTable.h"
#include "support/Text.h"

#include <cublasLt.h>
#include <cuda.h>
#include <nccl.h>
#include <string>

namespace weft::rt::cuda {

// X(FIELD, function): the function's name as in the headers, which define its version.
#define WEFT_DRIVER_FUNCTIONS(X)                                                                   \
  X(errorName, cuGetErrorName)                                                                     \
  X(errorText, cuGetErrorString)                                                                   \
  X(init, cuInit)                                                                                  \
  X(version, cuDriverGetVersion)                                                                   \
  X(deviceCount, cuDeviceGetCount)                                                                 \
  X(device, cuDeviceGet)                                                                           \
  X(deviceName, cuDeviceGetName)                                                                   \
  X(deviceIdentity, cuDeviceGetUuid)                                                               \
  X(deviceAttribute, cuDeviceGetAttribute)                                                         \
  X(deviceMemory, cuDeviceTotalMem)                                                                \
  X(freeMemory, cuMemGetInfo)                                                                      \
  X(retain, cuDevicePrimaryCtxRetain)                                                              \
  X(release, cuDevicePrimaryCtxRelease)                                                            \
  X(setCurrent, cuCtxSetCurrent)                                                                   \
  X(limit, cuCtxGetLimit)                                                                          \
  X(setLimit, cuCtxSetLimit)                                                                       \
  X(allocate, cuMemAlloc)                                                                          \
  X(free, cuMemFree)                                                                               \
  X(allocatePinned, cuMemHostAlloc)                                                                \
  X(freePinned, cuMemFreeHost)                                                                     \
  X(makeStream, cuStreamCreate)                                                                    \
  X(makeUrgentStream, cuStreamCreateWithPriority)                                                  \
  X(priorities, cuCtxGetStreamPriorityRange)                                                       \
  X(freeStream, cuStreamDestroy)                                                                   \
  X(wait, cuStreamWaitEvent)                                                                       \
  X(makeEvent, cuEventCreate)                                                                      \
  X(freeEvent, cuEventDestroy)                                                                     \
  X(record, cuEventRecord)                                                                         \
  X(query, cuEventQuery)                                                                           \
  X(await, cuEventSynchronize)                                                                     \
  X(elapsed, cuEventElapsedTime)                                                                   \
  X(copyToDevice, cuMemcpyHtoDAsync)                                                               \
  X(copyToHost, cuMemcpyDtoHAsync)                                                                 \
  X(copy, cuMemcpyDtoDAsync)                                                                       \
  X(fill, cuMemsetD8Async)                                                                         \
  X(copyRows, cuMemcpy2DAsync)                                                                     \
  X(fillWords, cuMemsetD2D32Async)                                                                 \
  X(fillRows, cuMemsetD2D8Async)                                                                   \
  X(writeWord, cuStreamWriteValue32)                                                               \
  X(load, cuModuleLoadDataEx)                                                                      \
  X(unload, cuModuleUnload)                                                                        \
  X(entry, cuModuleGetFunction)                                                                    \
  X(loadEntry, cuFuncLoad)                                                                         \
  X(entryAttribute, cuFuncGetAttribute)                                                            \
  X(launch, cuLaunchKernel)                                                                        \
  X(beginCapture, cuStreamBeginCapture)                                                            \
  X(endCapture, cuStreamEndCapture)                                                                \
  X(instantiate, cuGraphInstantiate)                                                               \
  X(freeCaptured, cuGraphDestroy)                                                                  \
  X(upload, cuGraphUpload)                                                                         \
  X(launchGraph, cuGraphLaunch)                                                                    \
  X(freeGraph, cuGraphExecDestroy)

#define WEFT_MATMUL_FUNCTIONS(X)                                                                   \
  X(statusText, cublasLtGetStatusString)                                                           \
  X(version, cublasLtGetVersion)                                                                   \
  X(make, cublasLtCreate)                                                                          \
  X(destroy, cublasLtDestroy)                                                                      \
  X(makeOperation, cublasLtMatmulDescCreate)                                                       \
  X(setOperation, cublasLtMatmulDescSetAttribute)                                                  \
  X(freeOperation, cublasLtMatmulDescDestroy)                                                      \
  X(makeLayout, cublasLtMatrixLayoutCreate)                                                        \
  X(setLayout, cublasLtMatrixLayoutSetAttribute)                                                   \
  X(freeLayout, cublasLtMatrixLayoutDestroy)                                                       \
  X(makeWishes, cublasLtMatmulPreferenceCreate)                                                    \
  X(setWishes, cublasLtMatmulPreferenceSetAttribute)                                               \
  X(freeWishes, cublasLtMatmulPreferenceDestroy)                                                   \
  X(findWays, cublasLtMatmulAlgoGetHeuristic)                                                      \
  X(checkWay, cublasLtMatmulAlgoCheck)                                                             \
  X(describeWay, cublasLtMatmulAlgoConfigGetAttribute)                                             \
  X(multiply, cublasLtMatmul)

#define WEFT_COMMUNICATION_FUNCTIONS(X)                                                            \
  X(version, ncclGetVersion)                                                                       \
  X(errorText, ncclGetErrorString)                                                                 \
  X(lastError, ncclGetLastError)                                                                   \
  X(makeId, ncclGetUniqueId)                                                                       \
  X(join, ncclCommInitRankConfig)                                                                  \
  X(split, ncclCommSplit)                                                                          \
  X(state, ncclCommGetAsyncError)                                                                  \
  X(end, ncclCommFinalize)                                                                         \
  X(destroy, ncclCommDestroy)                                                                      \
  X(abort, ncclCommAbort)                                                                          \
  X(beginGroup, ncclGroupStart)                                                                    \
  X(endGroup, ncclGroupEnd)                                                                        \
  X(allReduce, ncclAllReduce)                                                                      \
  X(allGather, ncclAllGather)                                                                      \
  X(reduceScatter, ncclReduceScatter)                                                              \
  X(send, ncclSend)                                                                                \
  X(receive, ncclRecv)                                                                             \
  X(allocate, ncclMemAlloc)                                                                        \
  X(free, ncclMemFree)                                                                             \
  X(registerMemory, ncclCommRegister)                                                              \
  X(unregisterMemory, ncclCommDeregister)                                                          \
  X(registerWindow, ncclCommWindowRegister)                                                        \
  X(unregisterWindow, ncclCommWindowDeregister)

#define WEFT_FIELD(field, function) decltype(&function) field = nullptr;
struct DriverCalls {
  WEFT_DRIVER_FUNCTIONS(WEFT_FIELD)
};
struct MatmulCalls {
  WEFT_MATMUL_FUNCTIONS(WEFT_FIELD)
};
struct CommunicationCalls {
  WEFT_COMMUNICATION_FUNCTIONS(WEFT_FIELD)
};
#undef WEFT_FIELD

/// Load the library; a success is final. Fail where there is no such library or it lacks a
/// function.
Status findDriver();
Status findMatmuls();
Status findCommunication();

/// Return the functions. REQUIRES: the `find` function above has succeeded.
const DriverCalls &driver();
const MatmulCalls &matmuls();
const CommunicationCalls &communication();

/// Returns `text` as an error, which is valid until the thread's next one. `mayLackMemory` is false
/// for texts whose words do not tell whether memory was missing.
DriverTable::Result say(std::string text, bool mayLackMemory = true);
/// Returns true if this thread's last error says that memory was missing.
bool lacksMemory();

/// Returns null for success, else the error.
inline DriverTable::Result resultOf(const Status &status) {
  return status ? nullptr : say(status.error().message);
}

/// Returns null for success, else an error:
/// "cuMemAlloc of 7.40 GiB: CUDA_ERROR_OUT_OF_MEMORY (out of memory)".
template <typename... Parts> DriverTable::Result resultOf(CUresult code, const Parts &...asked) {
  if (code == CUDA_SUCCESS) {
    return nullptr;
  }
  const char *name = nullptr, *text = nullptr;
  driver().errorName(code, &name);
  driver().errorText(code, &text);
  return say(concat(asked..., ": ", name ? name : concat("error ", int(code)), " (",
                    text ? text : "unknown to this driver", ")"));
}

template <typename... Parts>
DriverTable::Result resultOf(cublasStatus_t code, const Parts &...asked) {
  if (code == CUBLAS_STATUS_SUCCESS) {
    return nullptr;
  }
  return say(concat(asked..., ": ", matmuls().statusText(code)));
}

} // namespace weft::rt::cuda

#endif // WEFT_RT_BACKENDS_CUDA_CALLS_H
