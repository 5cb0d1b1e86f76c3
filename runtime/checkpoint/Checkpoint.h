//===- Checkpoint.h - a program's tensors in files --------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Files hold whole tensors by name, independent of the plan: a run under one plan
// can start from the file of another. The metadata of parameters and optimizer
// state are "format" = "weft", "step" = the number of steps done, and "plan" = the
// hash of the plan of the run.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_CHECKPOINT_CHECKPOINT_H
#define WEFT_RT_CHECKPOINT_CHECKPOINT_H

#include "execution/Executor.h"
#include "program/Shards.h"
#include "support/Safetensors.h"

#include <functional>

namespace weft::rt {

/// Fills `bytes` with a slab of tensor `number`; returns false if it cannot.
using ReadSlab = std::function<bool(size_t number, const Region &slab, std::span<char> bytes)>;

/// Writes tensors to a safetensors file, completely or not at all. Only one slab of a tensor at a
/// time is in memory (Shards.h). If `read` returns false, no file is written, and this function
/// returns false, too.
Result<bool> saveTensors(const std::string &path, const std::vector<TensorHeader> &tensors,
                         const std::map<std::string, std::string> &metadata, const ReadSlab &read);

/// A tensor of which each rank has a part.
struct TensorInParts {
  std::string name;
  const TensorLayout *layout = nullptr;
  /// Of the rank class whose ranks have the parts.
  const Program *owner = nullptr;
  /// Whether a value that is not finite is a failure.
  bool mustBeFinite = false;
};

/// Writes whole tensors to a file, with the metadata "format", "step" and "plan". All ranks must
/// call it at the same point with the same tensors; rank 0 writes. `part(i, begin, count)` returns
/// bytes of the rank's part of tensor i; it is called for tensors of which the rank owns the first
/// copy. On failure tells the communicator and returns false.
bool saveParts(const std::string &path, const Executor &executor,
               const std::vector<TensorInParts> &tensors,
               const std::function<BufferView(size_t, uint64_t, uint64_t)> &part, int64_t step);

/// Saves parameters and optimizer state with `saveParts`. A value that is not finite is a failure,
/// of exit status NotFinite.
bool saveCheckpoint(const std::string &path, std::span<const Program> programs,
                    const Executor &executor, int64_t step);

/// A file to start a run from, checked against the programs of all rank classes.
class Checkpoint {
public:
  /// Opens and checks the file. Fails if it is invalid, lacks a parameter, has a tensor unknown to
  /// the program, or has a different shape of a tensor. Tensors of any floating-point type are
  /// converted. F64 is rounded to F32, which `note` reports; a number too large for F32 is an
  /// error. Optimizer state must be complete or absent; state of another optimizer is ignored.
  /// Optimizer state without the metadata "step" is an error, because its running means would be
  /// corrected for the wrong number of steps.
  Status open(const std::string &path, std::span<const Program> programs);

  /// Returns the step to continue with: that of the file if it has all optimizer state, else 0.
  int64_t firstStep() const { return step; }

  /// Returns a note for the user on data that the file lacks or that was not used; may be empty.
  const std::string &note() const { return remark; }

  /// Copies the rank's parts into its buffers; called by the rank's thread. Optimizer state that
  /// the file lacks becomes zero.
  void load(const Program &program, Executor &executor) const;

private:
  Status checkTensor(const NamedTensor &tensor);
  void loadTensor(const NamedTensor &tensor, const Program &program, Executor &executor) const;
  Status checkNames(std::span<const Program> programs);
  Status checkState(std::span<const Program> programs);
  Status readStep(std::span<const Program> programs);

  SafetensorsFile file;
  std::string path, remark;
  int64_t step = 0;
  bool hasState = false;
  size_t rounded = 0; // Tensors of F64 in a program of F32.
};

} // namespace weft::rt

#endif // WEFT_RT_CHECKPOINT_CHECKPOINT_H
