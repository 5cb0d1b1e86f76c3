//===- Checkpoint.h - a program's tensors in files --------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Files hold whole tensors by name, whatever the plan, so that one plan's file is
// another's start. Parameters and optimizer state are saved with the metadata
// "format" = "weft", "step" = the number of steps they have seen, "plan" = the hash
// of the plan they were made under.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_CHECKPOINT_CHECKPOINT_H
#define WEFT_RT_CHECKPOINT_CHECKPOINT_H

#include "execution/Executor.h"
#include "support/Safetensors.h"

#include <functional>

namespace weft::rt {

/// Writes tensors to a safetensors file, whole or not at all. `read(i, bytes)` is to fill `bytes`
/// with tensor i; one tensor at a time is in memory. If it returns false, nothing is written, and
/// `error` is what `read` has set.
bool saveTensors(const std::string &path, const std::vector<TensorHeader> &tensors,
                 const std::map<std::string, std::string> &metadata,
                 const std::function<bool(size_t, std::span<char>)> &read, std::string &error);

/// A tensor of which ranks have parts.
struct TensorInParts {
  std::string name;
  const TensorLayout *layout = nullptr;
};

/// Writes whole tensors to a file, with the metadata "format", "step" and "plan". All ranks call
/// it at the same point, with the same tensors; rank 0 writes. `part(i)` is the rank's part of
/// tensor i, asked for one by one if it `holdsFirstCopy`. On failure has told the communicator.
bool saveParts(const std::string &path, const Program &program, const Executor &executor,
               const std::vector<TensorInParts> &tensors,
               const std::function<BufferView(size_t)> &part, int64_t step);

/// Saves parameters and optimizer state so.
bool saveCheckpoint(const std::string &path, const Program &program, const Executor &executor,
                    int64_t step);

/// A file to start from, checked against a program.
class Checkpoint {
public:
  /// Fails if the file is not valid, lacks a parameter, has tensors that the program does not know,
  /// or if a shape differs. Tensors may be of any floating-point type: they are converted, F64 to
  /// F32 by rounding, which `note` tells, unless a number is too large for that; then it fails.
  /// Optimizer state must be there as a whole or not at all. State of another optimizer is passed
  /// over. Optimizer state without the metadata "step" is an error: its running means would be
  /// corrected for the wrong number of steps.
  bool open(const std::string &path, const Program &program, std::string &error);

  /// The step to go on with: the file's, if it has all optimizer state; else 0.
  int64_t firstStep() const { return step; }

  /// Something to tell the user about what was not in the file or not used; may be empty.
  const std::string &note() const { return remark; }

  /// Puts the rank's parts into its buffers; called by the rank's thread. Optimizer
  /// state that the file lacks becomes zero.
  void load(const Program &program, Executor &executor) const;

private:
  bool checkTensor(const NamedTensor &tensor, std::string &error);
  void loadTensor(const NamedTensor &tensor, const Program &program, Executor &executor) const;
  bool checkNames(const Program &program, std::string &error);
  bool checkState(const Program &program, std::string &error);
  bool readStep(const Program &program, std::string &error);

  SafetensorsFile file;
  std::string path, remark;
  int64_t step = 0;
  bool hasState = false;
  size_t rounded = 0; // Tensors of F64 in a program of F32.
};

} // namespace weft::rt

#endif // WEFT_RT_CHECKPOINT_CHECKPOINT_H
