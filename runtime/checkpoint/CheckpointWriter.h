//===- CheckpointWriter.h - one rank's part in writing checkpoints ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each distinct part of a tensor is written once, by the lowest rank that holds
// it, into a file of that rank. Ranks share nothing but the file system and
// collectives: they may be threads or processes.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_CHECKPOINT_CHECKPOINTWRITER_H
#define WEFT_RT_CHECKPOINT_CHECKPOINTWRITER_H

#include "checkpoint/CheckpointFolder.h"
#include "checkpoint/Manifest.h"
#include "execution/Executor.h"
#include "support/OutputFile.h"

#include <array>

namespace weft::rt {

/// Belongs to its rank's thread.
class CheckpointWriter {
public:
  /// Ranks meet after each writes this many bytes, so that none waits for another much longer than
  /// a disk takes for them: how long a rank waits in a collective is limited (--timeout).
  static constexpr uint64_t kPortion = 64 << 20;

  /// Prepares collectives, so all ranks make theirs at the same point. `folder` is changed by rank
  /// 0 alone. All arguments must outlive this.
  CheckpointWriter(const Program &program, const RunIdentity &run, CheckpointFolder &folder,
                   Executor &executor, uint64_t portion = kPortion);

  /// Writes the checkpoint of `step`, together with all other ranks. When it returns true, the
  /// checkpoint is whole, has its name, and is on disk. On failure stops all ranks with the
  /// reason; what was written is then to be removed by `CheckpointFolder::removeLeftovers`.
  bool write(int64_t step);

private:
  /// A tensor's part.
  struct Content {
    const NamedTensor *tensor = nullptr;
    /// Without padding.
    uint64_t bytes = 0;
    /// Of a tensor that is padded, a copy without padding; else empty.
    std::vector<char> packed;
  };

  /// What a rank has to tell about its file.
  using Receipt = std::array<int64_t, 3>;

  bool meet();
  /// Whether the rank at `coordinates` writes its part.
  bool saves(const TensorLayout &layout, std::span<const int64_t> coordinates) const;
  /// Brings those contents that are padded up to date.
  void pack();
  bool writeShard(int64_t step, std::string &error);
  bool writePortion(uint64_t begin, uint64_t end, std::string &error);
  bool putPart(const Content &content, uint64_t begin, uint64_t end, std::string &error);
  bool put(std::span<const char> bytes, std::string &error);
  std::string header(int64_t step) const;
  Manifest makeManifest(int64_t step) const;
  bool seal(int64_t step, std::string &error);

  const Program &program;
  const RunIdentity &run;
  CheckpointFolder &folder;
  Executor &executor;
  Communicator &link;
  const uint64_t portion;

  /// The tensors that this rank writes.
  std::vector<Content> contents;
  /// The most bytes of tensors that any rank writes.
  uint64_t longest = 0;

  Communicator::Handle barrier = 0, gathering = 0;
  /// What ranks send each other when they only meet.
  int32_t nothing = 0;
  StreamFile file;
  Checksum checksum;
  Receipt receipt = {};
  /// Those of all ranks.
  std::vector<Receipt> receipts;
};

} // namespace weft::rt

#endif // WEFT_RT_CHECKPOINT_CHECKPOINTWRITER_H
