//===- FakeLoader.cpp - a fake CUDA driver that loads code, without devices ===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The functions that cuDNN looks up before it compiles a plan for an absent device. cuDNN
// may load its compiled code; all other functions fail with "no device". They leave out
// their parameters, which are not used, so this file does not include the driver's header.
//
//===----------------------------------------------------------------------===//

static constexpr int kNoDevice = 100;

#define ABSENT(name)                                                                               \
  int name() { return kNoDevice; }

extern "C" {

int cuDriverGetVersion(int *version) {
  *version = 13000;
  return 0;
}
int cuLibraryLoadData(void **library) {
  static char loaded;
  *library = &loaded;
  return 0;
}
int cuLibraryGetKernel(void **kernel, void *library) {
  *kernel = library;
  return 0;
}
int cuLibraryUnload() { return 0; }

ABSENT(cuCtxGetCurrent)
ABSENT(cuCtxGetDevice)
ABSENT(cuCtxGetLimit)
ABSENT(cuCtxPopCurrent)
ABSENT(cuCtxPushCurrent)
ABSENT(cuDeviceGet)
ABSENT(cuDeviceGetAttribute)
ABSENT(cuDeviceGetCount)
ABSENT(cuDevicePrimaryCtxRelease)
ABSENT(cuDevicePrimaryCtxReset)
ABSENT(cuDevicePrimaryCtxRetain)
ABSENT(cuFuncGetAttribute)
ABSENT(cuFuncSetAttribute)
ABSENT(cuGetErrorName)
ABSENT(cuGetErrorString)
ABSENT(cuInit)
ABSENT(cuKernelGetAttribute)
ABSENT(cuKernelSetAttribute)
ABSENT(cuLaunchCooperativeKernel)
ABSENT(cuLaunchKernel)
ABSENT(cuLaunchKernelEx)
ABSENT(cuLibraryLoadFromFile)
ABSENT(cuLinkAddData)
ABSENT(cuLinkAddData_v2)
ABSENT(cuLinkAddFile_v2)
ABSENT(cuLinkComplete)
ABSENT(cuLinkCreate)
ABSENT(cuLinkCreate_v2)
ABSENT(cuLinkDestroy)
ABSENT(cuMemcpyDtoH_v2)
ABSENT(cuModuleGetFunction)
ABSENT(cuModuleGetGlobal_v2)
ABSENT(cuModuleLoadData)
ABSENT(cuModuleLoadDataEx)
ABSENT(cuModuleLoadFatBinary)
ABSENT(cuModuleUnload)
ABSENT(cuOccupancyMaxActiveBlocksPerMultiprocessor)
ABSENT(cuOccupancyMaxPotentialClusterSize)
ABSENT(cuStreamGetCtx)
ABSENT(cuStreamSynchronize)
ABSENT(cuTensorMapEncodeTiled)
}
