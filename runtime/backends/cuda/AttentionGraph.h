//===- AttentionGraph.h - a part of attention in cuDNN --------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A graph of cuDNN and its plan. A plan is made for an open device, or, in tests, for the
// properties of a device that is absent: cuDNN then compiles its kernels, and tells their
// workspace or refuses the graph, without a device.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_CUDA_ATTENTIONGRAPH_H
#define WEFT_RT_BACKENDS_CUDA_ATTENTIONGRAPH_H

#include "weft-rt/Attention.h"
#include "weft-rt/Status.h"

#include <cuda.h>
#include <cudnn.h>

#include <array>
#include <memory>
#include <string>

namespace weft::rt::cuda {

/// Loads cuDNN and the libraries with which it compiles attention. Fails if one is missing or too
/// old; a success is final. Any thread may call it.
Status findCudnn();

/// Make and free cuDNN's handle for the thread's current device. REQUIRES: `findCudnn` succeeded.
Result<cudnnHandle_t> openCudnn();
Status closeCudnn(cudnnHandle_t handle);

/// The device of a plan. Without a handle: a device with the `properties` that cuDNN has written as
/// JSON, of compute capability `architecture` (for example 90).
struct AttentionTarget {
  cudnnHandle_t handle = nullptr;
  std::string properties = {};
  int32_t architecture = 0;
};

/// The rows of a role's tensor that a part of attention uses: `count` of its `length` positions,
/// from `first` on, each with all heads and features.
struct AttentionRows {
  int64_t heads, features, length, first, count;
  int64_t offset() const { return first * heads * features; }
};
AttentionRows rowsOf(const Attention &attention, const AttentionPart &part, size_t role);

/// The bytes of an attention's workspace before those for cuDNN. They hold the lse, in contiguous
/// rows, then each staged result in the order of roles; each begins at a multiple of `kStagedPart`.
inline constexpr uint64_t kStagedPart = 256;
uint64_t stagedBytes(const Attention &attention);

/// The graph of one part of an attention. Its operands are rows of bf16, the lse in contiguous rows
/// of f32, and the starts of documents.
class AttentionGraph {
public:
  /// The address of the part's first row by role, then that of the documents' starts.
  using Places = std::array<CUdeviceptr, Attention::ValueGradient + 2>;
  static constexpr size_t kStarts = Attention::ValueGradient + 1;

  /// Makes the graph. Fails if cuDNN does not support it, or needs more than `workspace` bytes.
  /// REQUIRES: `findCudnn` succeeded.
  static Result<std::unique_ptr<AttentionGraph>> make(const Attention &attention,
                                                      const AttentionPart &part,
                                                      const AttentionTarget &target,
                                                      bool isDeterministic, uint64_t workspace);
  virtual ~AttentionGraph() = default;
  virtual uint64_t workspaceBytes() const = 0;
  /// Enqueues it on `stream`.
  virtual Status run(cudnnHandle_t handle, CUstream stream, const Places &places,
                     CUdeviceptr workspace) = 0;
};

} // namespace weft::rt::cuda

#endif // WEFT_RT_BACKENDS_CUDA_ATTENTIONGRAPH_H
