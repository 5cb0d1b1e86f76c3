//===- CudaGraphs.cpp - parts of a program as CUDA graphs -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/cuda/CudaGraphs.h"

#include <algorithm>

using namespace weft::rt;
using namespace weft::rt::cuda;

DriverTable::Result CudaGraphs::begin(Handle device, Handle stream) {
  open = {};
  events.clear();
  DriverTable::Result failed = library.beginCapture(device, stream);
  isOpen = !failed;
  return failed;
}

DriverTable::Result CudaGraphs::end(Handle device, Handle stream, size_t number) {
  isOpen = false;
  graphs.resize(std::max(graphs.size(), number + 1));
  graphs[number] = std::move(open);
  return library.endCapture(device, stream, &graphs[number].handle);
}

void CudaGraphs::drop(Handle device, Handle stream) {
  if (isOpen) {
    isOpen = false;
    (void)library.endCapture(device, stream, nullptr); // An error was reported before.
  }
}

bool CudaGraphs::hasEvent(uint32_t event) const {
  return std::find(events.begin(), events.end(), event) != events.end();
}

DriverTable::Result CudaGraphs::launch(Handle device, Handle stream, size_t number) const {
  return library.launchGraph(device, stream, graphs[number].handle);
}

DriverTable::Result CudaGraphs::free(Handle device) {
  DriverTable::Result failed = nullptr;
  for (Graph &graph : graphs) {
    if (graph.handle && !failed) {
      failed = library.freeGraph(device, graph.handle);
      graph.handle = failed ? graph.handle : 0;
    }
  }
  return failed;
}
