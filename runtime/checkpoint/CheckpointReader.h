//===- CheckpointReader.h - one checkpoint, checked and read ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_CHECKPOINT_CHECKPOINTREADER_H
#define WEFT_RT_CHECKPOINT_CHECKPOINTREADER_H

#include "checkpoint/Manifest.h"
#include "execution/Executor.h"
#include "support/Safetensors.h"

#include <map>

namespace weft::rt {

/// The files of one checkpoint, mapped. Immutable after `open`; any thread may read.
class CheckpointReader {
public:
  /// How much of a checkpoint is looked at: every byte, or sizes and headers, where another process
  /// has looked at the bytes.
  enum class Check : uint8_t { Bytes, Form };

  /// Fails if the checkpoint in the folder at `path` is not whole, or is not that of `step`.
  bool open(const std::string &path, int64_t step, Check check, std::string &error);

  const Manifest &manifest() const { return content; }

  /// Fails if the tensors are not those of the program: other names, types or shapes. How they are
  /// split does not matter.
  bool fits(const Program &program, std::string &error) const;

  /// Puts the rank's parts into its buffers, whatever parts they are made up of; called by the
  /// rank's thread. Only what the rank needs is read.
  void load(const Program &program, Executor &executor) const;

private:
  bool openShard(const Shard &shard, Check check, std::string &error);
  bool checkParts(std::string &error) const;
  bool fits(const NamedTensor &tensor, std::string &error) const;

  std::string path;
  Manifest content;
  std::vector<std::unique_ptr<SafetensorsFile>> files;
  /// Numbers in `content.tensors` by name.
  std::map<std::string, size_t> numbers;
};

} // namespace weft::rt

#endif // WEFT_RT_CHECKPOINT_CHECKPOINTREADER_H
