//===- CheckpointReader.h - checks and reads one checkpoint ---------------===//
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
  /// The extent of the check: every byte and number, or only sizes and headers if another process
  /// has checked the bytes.
  enum class Check : uint8_t { Bytes, Form };

  /// Maps and checks the checkpoint in the folder at `path`. Fails if it is damaged, has numbers
  /// that are not finite, or is not of `step`.
  Status open(const std::string &path, int64_t step, Check check);

  const Manifest &manifest() const { return content; }

  /// Fails if names, types or shapes of the tensors differ from those of the program. The division
  /// into shards may differ.
  Status checkFits(std::span<const Program> programs) const;

  /// Assembles the rank's parts of all tensors in its buffers, however the checkpoint divides them;
  /// called by the rank's thread. Reads only the regions that the rank needs.
  void load(const Program &program, Executor &executor) const;

private:
  Status openShard(const Shard &shard, Check check);
  Status checkParts() const;
  Status checkFinite() const;
  Status checkFits(const NamedTensor &tensor) const;

  std::string path;
  Manifest content;
  std::vector<std::unique_ptr<SafetensorsFile>> files;
  /// The numbers in `content.tensors` by name.
  std::map<std::string, size_t> numbers;
};

} // namespace weft::rt

#endif // WEFT_RT_CHECKPOINT_CHECKPOINTREADER_H
