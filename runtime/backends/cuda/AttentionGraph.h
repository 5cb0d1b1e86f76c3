//===- AttentionGraph.h - a part of attention as cuDNN does it ------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A graph of cuDNN and the plan for it. A plan is made for a device that is open, or, as
// tests do, for one of which only the properties are known: cuDNN then compiles its
// kernels and says what they need, and what it refuses, without a device.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_CUDA_ATTENTIONGRAPH_H
#define WEFT_RT_BACKENDS_CUDA_ATTENTIONGRAPH_H

#include "weft-rt/Attention.h"

#include <cuda.h>
#include <cudnn.h>

#include <array>
#include <memory>
#include <string>

namespace weft::rt::cuda {

/// Loads cuDNN and what it compiles attention with. Whether they are there and new enough is
/// settled by the first success. Any thread may call it.
bool findCudnn(std::string &error);

/// What cuDNN keeps for a device, the one that the thread is on. An error's text, else "".
/// REQUIRES: cuDNN was found.
std::string openCudnn(cudnnHandle_t *handle);
std::string closeCudnn(cudnnHandle_t handle);

/// Whom a plan is for: where there is no handle, a device that cuDNN knows by `properties`, JSON,
/// of compute capability `architecture`, as 90.
struct AttentionTarget {
  cudnnHandle_t handle = nullptr;
  std::string properties = {};
  int32_t architecture = 0;
};

/// A role's tensor as a part of attention sees it: positions from `first` on of `length`, each of
/// so many heads and features.
struct AttentionRows {
  int64_t heads, features, length, first, count;
  int64_t offset() const { return first * heads * features; }
};
AttentionRows rowsOf(const Attention &attention, const AttentionPart &part, size_t role);

/// What an attention's workspace holds before cuDNN's own, in parts that begin at multiples of
/// `kStagedPart`: the lse, rows one after another, then each staged result in the order of roles.
inline constexpr uint64_t kStagedPart = 256;
uint64_t stagedBytes(const Attention &attention);

/// The rows of a part's roles, all of bf16 but the lse, which is f32 with rows that follow each
/// other; and of documents where these start.
class AttentionGraph {
public:
  /// By roles, then the starts: where the first row of the part is.
  using Places = std::array<CUdeviceptr, Attention::ValueGradient + 2>;
  static constexpr size_t kStarts = Attention::ValueGradient + 1;

  /// Nothing, and why, where cuDNN does not do it, or not with `workspace` bytes. REQUIRES: cuDNN
  /// was found.
  static std::unique_ptr<AttentionGraph> make(const Attention &attention, const AttentionPart &part,
                                              const AttentionTarget &target, bool isDeterministic,
                                              uint64_t workspace, std::string &refusal);
  virtual ~AttentionGraph() = default;
  virtual uint64_t workspaceBytes() const = 0;
  /// Enqueues it on `stream`. An error's text, else "".
  virtual std::string run(cudnnHandle_t handle, CUstream stream, const Places &places,
                          CUdeviceptr workspace) = 0;
};

} // namespace weft::rt::cuda

#endif // WEFT_RT_BACKENDS_CUDA_ATTENTIONGRAPH_H
