//===- Driver.cpp - devices, memory, streams and launches -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/cuda/Parts.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <fstream>
#include <memory>
#include <vector>

using namespace weft::rt;
using namespace weft::rt::cuda;

namespace {

/// The context of this thread's calls.
thread_local CUcontext current = nullptr;

//===----------------------------------------------------------------------===//
// Devices
//===----------------------------------------------------------------------===//

/// Returns ", driver 580.159", as the kernel module reports it, since the library reports only its
/// version of CUDA. Empty if the module's file is hidden.
std::string driverText() {
  std::ifstream file("/proc/driver/nvidia/version");
  std::string word;
  while (file >> word) {
    if (std::isdigit(static_cast<unsigned char>(word[0])) && word.find('.') != std::string::npos) {
      return ", driver " + word;
    }
  }
  return "";
}

/// Loads and initializes the driver. It may be called any number of times.
CallResult start(bool &hasDevices) {
  if (CallResult failed = resultOf(findDriver())) {
    return failed;
  }
  CUresult code = driver().init(0);
  hasDevices = code != CUDA_ERROR_NO_DEVICE;
  return hasDevices ? resultOf(code, "cuInit") : nullptr;
}

const char *name() {
  static thread_local std::string text;
  int version = 0;
  if (!findDriver() || driver().version(&version) != CUDA_SUCCESS) {
    return "CUDA without a driver";
  }
  text = concat("CUDA ", version / 1000, ".", version % 1000 / 10, driverText());
  return text.c_str();
}

CallResult countDevices(int64_t *count) {
  bool hasDevices = false;
  int found = 0;
  *count = 0;
  if (CallResult failed = start(hasDevices)) {
    return failed;
  }
  CallResult failed =
      hasDevices ? resultOf(driver().deviceCount(&found), "cuDeviceGetCount") : nullptr;
  *count = found;
  return failed;
}

CallResult readFacts(CUdevice device, DeviceFacts &facts) {
  facts = {};
  auto read = [&](CUdevice_attribute attribute, int &value) {
    return resultOf(driver().deviceAttribute(&value, attribute, device), "cuDeviceGetAttribute");
  };
  int major = 0, minor = 0, multiprocessors = 0;
  size_t bytes = 0;
  CallResult failed =
      resultOf(driver().deviceName(facts.name, sizeof facts.name, device), "cuDeviceGetName");
  CUuuid identity = {};
  failed =
      failed ? failed : resultOf(driver().deviceIdentity(&identity, device), "cuDeviceGetUuid");
  static_assert(sizeof facts.identity == sizeof identity.bytes);
  std::memcpy(facts.identity, identity.bytes, sizeof facts.identity);
  failed = failed ? failed : read(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, major);
  failed = failed ? failed : read(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, minor);
  failed = failed ? failed : read(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, multiprocessors);
  failed = failed ? failed : resultOf(driver().deviceMemory(&bytes, device), "cuDeviceTotalMem");
  facts.architecture = uint32_t(major * 10 + minor);
  facts.multiprocessors = uint32_t(multiprocessors);
  facts.memoryBytes = bytes;
  facts.communicationBytes = kCommunicationBytes;
  return failed;
}

CallResult open(int64_t number, Handle *opened, DeviceFacts *facts) {
  bool hasDevices = false;
  *opened = 0;
  if (CallResult failed = start(hasDevices)) {
    return failed;
  }
  auto made = std::make_unique<Device>();
  made->number = number;
  made->communicators = makeCommunicators();
  if (CallResult failed =
          resultOf(driver().device(&made->device, int(number)), "cuDeviceGet of device ", number)) {
    return failed;
  }
  if (CallResult failed = readFacts(made->device, *facts)) {
    return failed;
  }
  // The device's primary context, which all libraries use.
  if (CallResult failed = resultOf(driver().retain(&made->context, made->device),
                                   "cuDevicePrimaryCtxRetain of device ", number)) {
    return failed;
  }
  Device *entered = nullptr;
  if (CallResult failed = enter(toHandle(made.get()), entered)) {
    driver().release(made->device);
    return failed;
  }
  size_t unused = 0, all = 0;
  if (CallResult failed = resultOf(driver().freeMemory(&unused, &all), "cuMemGetInfo")) {
    driver().release(made->device);
    return failed;
  }
  facts->freeBytes = unused;
  *opened = toHandle(made.release());
  return nullptr;
}

CallResult close(Handle handle) {
  Device *device = nullptr;
  if (CallResult failed = enter(handle, device)) {
    return failed;
  }
  std::unique_ptr<Device> owned(device);
  CallResult failed = closeMatmuls(*device);
  // Only the last error text is valid.
  if (CallResult also = closeAttention(*device)) {
    failed = also;
  }
  if (CallResult also = closeGraphs(*device)) {
    failed = also;
  }
  driver().setCurrent(nullptr);
  current = nullptr;
  CUresult code = driver().release(device->device);
  return failed ? failed : resultOf(code, "cuDevicePrimaryCtxRelease of device ", device->number);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

CallResult freeMemory(Handle handle, uint64_t *bytes) {
  Device *device = nullptr;
  *bytes = 0;
  if (CallResult failed = enter(handle, device)) {
    return failed;
  }
  size_t unused = 0, all = 0;
  CallResult failed = resultOf(driver().freeMemory(&unused, &all), "cuMemGetInfo");
  *bytes = unused;
  return failed;
}

CallResult allocate(Handle handle, uint64_t bytes, Address *address) {
  Device *device = nullptr;
  *address = 0;
  if (CallResult failed = enter(handle, device)) {
    return failed;
  }
  CUdeviceptr made = 0;
  // The driver refuses to allocate 0 bytes.
  CUresult code = driver().allocate(&made, std::max<uint64_t>(bytes, 1));
  if (code == CUDA_ERROR_OUT_OF_MEMORY) {
    return nullptr;
  }
  *address = made;
  return resultOf(code, "cuMemAlloc of ", bytesText(bytes));
}

CallResult free(Handle handle, Address address) {
  Device *device = nullptr;
  CallResult failed = enter(handle, device);
  return failed ? failed : resultOf(driver().free(address), "cuMemFree");
}

CallResult allocatePinned(Handle handle, uint64_t bytes, void **place) {
  Device *device = nullptr;
  *place = nullptr;
  if (CallResult failed = enter(handle, device)) {
    return failed;
  }
  CUresult code = driver().allocatePinned(place, std::max<uint64_t>(bytes, 1), 0);
  if (code == CUDA_ERROR_OUT_OF_MEMORY) {
    *place = nullptr;
    return nullptr;
  }
  return resultOf(code, "cuMemHostAlloc of ", bytesText(bytes));
}

CallResult freePinned(Handle handle, void *place) {
  Device *device = nullptr;
  CallResult failed = enter(handle, device);
  return failed ? failed : resultOf(driver().freePinned(place), "cuMemFreeHost");
}

//===----------------------------------------------------------------------===//
// Streams and events
//===----------------------------------------------------------------------===//

CallResult makeStream(Handle device, Handle *stream) {
  CUstream made = nullptr;
  // Otherwise work that a library enqueues on the default stream would block all other streams.
  CallResult failed =
      callDriver<&DriverCalls::makeStream>(device, "cuStreamCreate", &made, CU_STREAM_NON_BLOCKING);
  *stream = toHandle(made);
  return failed;
}

CallResult makeUrgentStream(Handle handle, Handle *stream) {
  Device *device = nullptr;
  *stream = 0;
  if (CallResult failed = enter(handle, device)) {
    return failed;
  }
  int least = 0, greatest = 0;
  if (CallResult failed =
          resultOf(driver().priorities(&least, &greatest), "cuCtxGetStreamPriorityRange")) {
    return failed;
  }
  CUstream made = nullptr;
  CUresult code = driver().makeUrgentStream(&made, CU_STREAM_NON_BLOCKING, greatest);
  *stream = toHandle(made);
  return resultOf(code, "cuStreamCreateWithPriority");
}

CallResult freeStream(Handle device, Handle stream) {
  return callDriver<&DriverCalls::freeStream>(device, "cuStreamDestroy",
                                              fromHandle<CUstream_st>(stream));
}

CallResult makeEvent(Handle device, Handle *event) {
  CUevent made = nullptr;
  // Events with times are slower to record.
  CallResult failed =
      callDriver<&DriverCalls::makeEvent>(device, "cuEventCreate", &made, CU_EVENT_DISABLE_TIMING);
  *event = toHandle(made);
  return failed;
}

CallResult freeEvent(Handle device, Handle event) {
  return callDriver<&DriverCalls::freeEvent>(device, "cuEventDestroy",
                                             fromHandle<CUevent_st>(event));
}

CallResult record(Handle device, Handle event, Handle stream) {
  return callDriver<&DriverCalls::record>(device, "cuEventRecord", fromHandle<CUevent_st>(event),
                                          fromHandle<CUstream_st>(stream));
}

CallResult wait(Handle device, Handle stream, Handle event) {
  return callDriver<&DriverCalls::wait>(device, "cuStreamWaitEvent",
                                        fromHandle<CUstream_st>(stream),
                                        fromHandle<CUevent_st>(event), 0);
}

CallResult reached(Handle handle, Handle event, bool *isReached) {
  Device *device = nullptr;
  *isReached = false;
  if (CallResult failed = enter(handle, device)) {
    return failed;
  }
  CUresult code = driver().query(fromHandle<CUevent_st>(event));
  *isReached = code == CUDA_SUCCESS;
  return code == CUDA_ERROR_NOT_READY ? nullptr : resultOf(code, "cuEventQuery");
}

CallResult await(Handle device, Handle event) {
  return callDriver<&DriverCalls::await>(device, "cuEventSynchronize",
                                         fromHandle<CUevent_st>(event));
}

CallResult makeTimer(Handle device, Handle *event) {
  CUevent made = nullptr;
  CallResult failed =
      callDriver<&DriverCalls::makeEvent>(device, "cuEventCreate", &made, CU_EVENT_DEFAULT);
  *event = toHandle(made);
  return failed;
}

CallResult elapsed(Handle handle, Handle from, Handle to, double *seconds) {
  Device *device = nullptr;
  *seconds = 0;
  if (CallResult failed = enter(handle, device)) {
    return failed;
  }
  float milliseconds = 0;
  CUresult code =
      driver().elapsed(&milliseconds, fromHandle<CUevent_st>(from), fromHandle<CUevent_st>(to));
  *seconds = double(milliseconds) / 1e3;
  return resultOf(code, "cuEventElapsedTime");
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

CallResult copyToDevice(Handle handle, Handle stream, Address to, const void *host,
                        uint64_t bytes) {
  Device *device = nullptr;
  CallResult failed = enter(handle, device);
  if (failed || bytes == 0) {
    return failed;
  }
  CUresult code = driver().copyToDevice(to, host, bytes, fromHandle<CUstream_st>(stream));
  return resultOf(code, "cuMemcpyHtoDAsync of ", bytesText(bytes));
}

CallResult copyToHost(Handle handle, Handle stream, void *host, Address from, uint64_t bytes) {
  Device *device = nullptr;
  CallResult failed = enter(handle, device);
  if (failed || bytes == 0) {
    return failed;
  }
  CUresult code = driver().copyToHost(host, from, bytes, fromHandle<CUstream_st>(stream));
  return resultOf(code, "cuMemcpyDtoHAsync of ", bytesText(bytes));
}

CallResult copy(Handle handle, Handle stream, Address to, Address from, uint64_t bytes) {
  Device *device = nullptr;
  CallResult failed = enter(handle, device);
  if (failed || bytes == 0) {
    return failed;
  }
  CUresult code = driver().copy(to, from, bytes, fromHandle<CUstream_st>(stream));
  return resultOf(code, "cuMemcpyDtoDAsync of ", bytesText(bytes));
}

CallResult zero(Handle handle, Handle stream, Address at, uint64_t bytes) {
  Device *device = nullptr;
  CallResult failed = enter(handle, device);
  if (failed || bytes == 0) {
    return failed;
  }
  CUresult code = driver().fill(at, 0, bytes, fromHandle<CUstream_st>(stream));
  return resultOf(code, "cuMemsetD8Async of ", bytesText(bytes));
}

/// The driver makes all earlier writes visible to all before this one.
CallResult writeProgress(Handle handle, Handle stream, uint32_t *word, uint32_t value) {
  Device *device = nullptr;
  if (CallResult failed = enter(handle, device)) {
    return failed;
  }
  // With unified addressing, pinned memory has the same address on the device.
  CUresult code =
      driver().writeWord(fromHandle<CUstream_st>(stream), reinterpret_cast<CUdeviceptr>(word),
                         value, CU_STREAM_WRITE_VALUE_DEFAULT);
  return resultOf(code, "cuStreamWriteValue32");
}

//===----------------------------------------------------------------------===//
// Modules and launches
//===----------------------------------------------------------------------===//

CallResult load(Handle handle, const void *bytes, Handle *module) {
  Device *device = nullptr;
  *module = 0;
  if (CallResult failed = enter(handle, device)) {
    return failed;
  }
  // Errors of the driver's assembler for PTX; there are none for cubins.
  char log[4096] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {log, reinterpret_cast<void *>(sizeof log - 1)};
  CUmodule made = nullptr;
  CUresult code = driver().load(&made, bytes, 2, options, values);
  if (code == CUDA_ERROR_OUT_OF_MEMORY) {
    return nullptr;
  }
  *module = toHandle(made);
  return resultOf(code, "cuModuleLoadDataEx", *log ? ", of which the assembler says '" : "", log,
                  *log ? "'" : "");
}

CallResult unload(Handle device, Handle module) {
  return callDriver<&DriverCalls::unload>(device, "cuModuleUnload", fromHandle<CUmod_st>(module));
}

CallResult entry(Handle handle, Handle module, const char *name, Handle *found) {
  Device *device = nullptr;
  *found = 0;
  if (CallResult failed = enter(handle, device)) {
    return failed;
  }
  CUfunction function = nullptr;
  if (CallResult failed = resultOf(driver().entry(&function, fromHandle<CUmod_st>(module), name),
                                   "cuModuleGetFunction of '", name, "'")) {
    return failed;
  }
  // Otherwise the driver may load the entry at its first launch.
  if (CallResult failed = resultOf(driver().loadEntry(function), "cuFuncLoad of '", name, "'")) {
    return failed;
  }
  *found = toHandle(function);
  return nullptr;
}

CallResult localBytes(Handle handle, Handle entry, uint64_t *bytes) {
  Device *device = nullptr;
  *bytes = 0;
  if (CallResult failed = enter(handle, device)) {
    return failed;
  }
  int found = 0;
  CallResult failed = resultOf(driver().entryAttribute(&found, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES,
                                                       fromHandle<CUfunc_st>(entry)),
                               "cuFuncGetAttribute of local memory");
  *bytes = uint64_t(std::max(found, 0));
  return failed;
}

/// Raising the driver's limit takes as much memory as a kernel that needs it, but at once.
CallResult reserveLocal(Handle handle, uint64_t bytes, bool *isThere) {
  Device *device = nullptr;
  *isThere = false;
  if (CallResult failed = enter(handle, device)) {
    return failed;
  }
  size_t before = 0;
  CallResult failed = resultOf(driver().limit(&before, CU_LIMIT_STACK_SIZE), "cuCtxGetLimit");
  if (failed || bytes <= before) {
    *isThere = !failed;
    return failed;
  }
  CUresult code = driver().setLimit(CU_LIMIT_STACK_SIZE, bytes);
  *isThere = code == CUDA_SUCCESS;
  return code == CUDA_ERROR_OUT_OF_MEMORY
             ? nullptr
             : resultOf(code, "cuCtxSetLimit of ", bytesText(bytes), " a thread");
}

CallResult launch(Handle handle, Handle stream, Handle entry, uint32_t blocks, uint32_t threads,
                  const uint64_t *arguments, size_t count) {
  // It keeps its memory, so that nothing is allocated in the long run.
  static thread_local std::vector<void *> places;
  Device *device = nullptr;
  if (CallResult failed = enter(handle, device)) {
    return failed;
  }
  places.resize(count);
  for (size_t i = 0; i < count; ++i) {
    places[i] = const_cast<uint64_t *>(arguments + i); // Only read.
  }
  CUresult code = driver().launch(fromHandle<CUfunc_st>(entry), blocks, 1, 1, threads, 1, 1, 0,
                                  fromHandle<CUstream_st>(stream), places.data(), nullptr);
  return resultOf(code, "cuLaunchKernel of ", blocks, " blocks of ", threads, " threads");
}

} // namespace

CallResult cuda::enter(Handle handle, Device *&device) {
  device = fromHandle<Device>(handle);
  if (device->isGivenUp) {
    return say(concat("device ", device->number, " was given up"));
  }
  if (current == device->context) {
    return nullptr;
  }
  CallResult failed =
      resultOf(driver().setCurrent(device->context), "cuCtxSetCurrent of device ", device->number);
  current = failed ? nullptr : device->context;
  return failed;
}

void cuda::addDriver(DriverTable &library) {
  library.lacksMemory = lacksMemory;
  library.name = name;
  library.countDevices = countDevices;
  library.open = open;
  library.close = close;
  library.freeMemory = freeMemory;
  library.allocate = allocate;
  library.free = free;
  library.allocatePinned = allocatePinned;
  library.freePinned = freePinned;
  library.makeStream = makeStream;
  library.makeUrgentStream = makeUrgentStream;
  library.freeStream = freeStream;
  library.makeEvent = makeEvent;
  library.freeEvent = freeEvent;
  library.record = record;
  library.wait = wait;
  library.reached = reached;
  library.await = await;
  library.makeTimer = makeTimer;
  library.elapsed = elapsed;
  library.copyToDevice = copyToDevice;
  library.copyToHost = copyToHost;
  library.copy = copy;
  library.zero = zero;
  library.writeProgress = writeProgress;
  library.load = load;
  library.unload = unload;
  library.entry = entry;
  library.localBytes = localBytes;
  library.reserveLocal = reserveLocal;
  library.launch = launch;
}
