//===- Graphs.cpp - work that is captured once and launched often ---------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/cuda/Count.h"
#include "backends/cuda/Parts.h"

using namespace weft::rt;
using namespace weft::rt::cuda;

namespace {

/// Loads the kernel of `countProgress`; called before a capture, in which nothing may be loaded.
CallResult loadCount(Device &device) {
  if (device.count) {
    return nullptr;
  }
  CUfunction found = nullptr;
  CallResult failed = nullptr;
  if (!device.counting) {
    failed = resultOf(driver().load(&device.counting, kCountPtx, 0, nullptr, nullptr),
                      "cuModuleLoadDataEx of 'weft_count'");
  }
  failed = failed ? failed
                  : resultOf(driver().entry(&found, device.counting, "weft_count"),
                             "cuModuleGetFunction of 'weft_count'");
  failed = failed ? failed : resultOf(driver().loadEntry(found), "cuFuncLoad of 'weft_count'");
  device.count = failed ? nullptr : found;
  return failed;
}

CallResult countProgress(Handle handle, Handle stream, uint32_t *word) {
  Device *device = nullptr;
  if (CallResult failed = enter(handle, device)) {
    return failed;
  }
  if (!device->count) {
    return say("expected beginCapture before countProgress");
  }
  // With unified addressing, pinned memory has the same address on the device.
  auto place = reinterpret_cast<CUdeviceptr>(word);
  void *arguments[] = {&place};
  return resultOf(driver().launch(device->count, 1, 1, 1, 1, 1, 1, 0,
                                  fromHandle<CUstream_st>(stream), arguments, nullptr),
                  "cuLaunchKernel of 'weft_count'");
}

/// Does not restrict other threads: those of the process's other devices, and the libraries'.
CallResult beginCapture(Handle handle, Handle stream) {
  Device *device = nullptr;
  CallResult failed = enter(handle, device);
  failed = failed ? failed : loadCount(*device);
  return failed ? failed
                : resultOf(driver().beginCapture(fromHandle<CUstream_st>(stream),
                                                 CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
                           "cuStreamBeginCapture");
}

/// Prepares a captured graph for launches.
CallResult instantiate(CUstream on, CUgraph captured, CUgraphExec &made) {
  // Else the priority of the launching stream would apply to all captured streams.
  CallResult failed =
      resultOf(driver().instantiate(&made, captured, CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY),
               "cuGraphInstantiate");
  // Otherwise the first launch would take this time and memory.
  return failed ? failed : resultOf(driver().upload(made, on), "cuGraphUpload");
}

CallResult endCapture(Handle handle, Handle stream, Handle *graph) {
  Device *device = nullptr;
  if (graph) {
    *graph = 0;
  }
  if (CallResult failed = enter(handle, device)) {
    return failed;
  }
  auto *on = fromHandle<CUstream_st>(stream);
  CUgraph captured = nullptr;
  if (CallResult failed = resultOf(driver().endCapture(on, &captured), "cuStreamEndCapture")) {
    return failed;
  }
  CUgraphExec made = nullptr;
  CallResult failed = graph ? instantiate(on, captured, made) : nullptr;
  // Only one error text is valid at a time: return the first error.
  CUresult code = driver().freeCaptured(captured);
  failed = failed ? failed : resultOf(code, "cuGraphDestroy");
  if (failed && made) {
    driver().freeGraph(made);
  } else if (graph) {
    *graph = toHandle(made);
  }
  return failed;
}

CallResult launchGraph(Handle device, Handle stream, Handle graph) {
  return callDriver<&DriverCalls::launchGraph>(
      device, "cuGraphLaunch", fromHandle<CUgraphExec_st>(graph), fromHandle<CUstream_st>(stream));
}

CallResult freeGraph(Handle device, Handle graph) {
  return callDriver<&DriverCalls::freeGraph>(device, "cuGraphExecDestroy",
                                             fromHandle<CUgraphExec_st>(graph));
}

} // namespace

CallResult cuda::closeGraphs(Device &device) {
  return device.counting ? resultOf(driver().unload(device.counting), "cuModuleUnload") : nullptr;
}

void cuda::addGraphs(DriverTable &library) {
  library.countProgress = countProgress;
  library.beginCapture = beginCapture;
  library.endCapture = endCapture;
  library.launchGraph = launchGraph;
  library.freeGraph = freeGraph;
}
