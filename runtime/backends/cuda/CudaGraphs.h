//===- CudaGraphs.h - parts of a program that a device launches at once ----===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A graph is what a part of a section has enqueued between `begin` and `end`. It begins and
// ends with all streams together, so an event that was recorded before has been waited for.
// Addresses never change, so a graph is never either.
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
  /// Under this number; the same streams come together before.
  DriverTable::Result end(Handle device, Handle stream, size_t number);
  /// Forgets what was recorded, if it is not ended.
  void drop(Handle device, Handle stream);

  /// While one is recorded: that a stream comes to a mark, or an event is recorded, and whether
  /// that was.
  void noteMark(Stream on, uint32_t mark) { open.marks.emplace_back(on, mark); }
  void noteEvent(uint32_t event) { events.push_back(event); }
  bool hasEvent(uint32_t event) const;

  /// The marks that a launch comes to, in the order in which they were enqueued.
  const std::vector<std::pair<Stream, uint32_t>> &marks(size_t number) const {
    return graphs[number].marks;
  }
  DriverTable::Result launch(Handle device, Handle stream, size_t number) const;
  /// To be called before collectives end, and when nothing runs.
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
  /// By number; some have none.
  std::vector<Graph> graphs;
};

} // namespace weft::rt::cuda

#endif // WEFT_RT_BACKENDS_CUDA_CUDAGRAPHS_H
