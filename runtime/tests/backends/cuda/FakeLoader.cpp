//===- FakeLoader.cpp - a CUDA driver that takes code and runs none -------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What cuDNN looks for before it compiles a plan for a device that is not there. It may
// load what it has compiled; everything else says that there is no device. Without the
// driver's header: parameters, which are not looked at, are left out.
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
