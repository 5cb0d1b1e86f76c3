//===- CudaGraphs.h - parts of a program as CUDA graphs --------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A graph holds the work that a part of a section enqueues between `begin` and `end`. At its
// beginning and end all streams are joined, so that it need not wait for events recorded
// before. Addresses never change, so a graph is never updated.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_CUDA_CUDAGRAPHS_H
#define WEFT_RT_BACKENDS_CUDA_CUDAGRAPHS_H

#include "backends/cuda/DriverTable.h"
#include "weft-rt/Program.h"

#include <utility>
#include <vector>

namespace weft::rt::cuda {

class CudaGraphs {
public:
  using Handle = DriverTable::Handle;

  explicit CudaGraphs(const DriverTable &library) : library(library) {}

  bool isRecording() const { return isOpen; }
  DriverTable::Result begin(Handle device, Handle stream);
  /// Ends the recording and keeps the graph as `number`. REQUIRES: `stream` waits for all other
  /// streams of the recording.
  DriverTable::Result end(Handle device, Handle stream, size_t number);
  /// Discards a recording that has not ended.
  void drop(Handle device, Handle stream);

  /// Record that a stream passes a mark or that an event is recorded; `hasEvent` returns true for
  /// events of the current recording. REQUIRES: isRecording().
  void noteMark(Stream on, uint32_t mark) { open.marks.emplace_back(on, mark); }
  void noteEvent(uint32_t event) { events.push_back(event); }
  bool hasEvent(uint32_t event) const;

  /// Returns the marks that a launch passes, in the order in which they were enqueued.
  const std::vector<std::pair<Stream, uint32_t>> &marks(size_t number) const {
    return graphs[number].marks;
  }
  DriverTable::Result launch(Handle device, Handle stream, size_t number) const;
  /// Frees all graphs. Call it before the communicators end, while the device is idle.
  DriverTable::Result free(Handle device);

private:
  struct Graph {
    Handle handle = 0;
    std::vector<std::pair<Stream, uint32_t>> marks;
  };

  const DriverTable &library;
  bool isOpen = false;
  Graph open;
  std::vector<uint32_t> events;
  /// By number; a graph may be missing.
  std::vector<Graph> graphs;
};

} // namespace weft::rt::cuda

#endif // WEFT_RT_BACKENDS_CUDA_CUDAGRAPHS_H
