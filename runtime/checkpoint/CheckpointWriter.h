//===- CheckpointWriter.h - writes one rank's part of checkpoints ---------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The lowest rank that holds a distinct part of a tensor writes it to a file of its
// own, so each part is written once. Ranks share only the file system and
// collectives: they may be threads or processes.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_CHECKPOINT_CHECKPOINTWRITER_H
#define WEFT_RT_CHECKPOINT_CHECKPOINTWRITER_H

#include "checkpoint/CheckpointFolder.h"
#include "checkpoint/Manifest.h"
#include "execution/Executor.h"
#include "program/OwnedTensors.h"
#include "program/Shards.h"
#include "support/OutputFile.h"

#include <array>

namespace weft::rt {

/// Belongs to its rank's thread.
class CheckpointWriter {
public:
  /// Ranks synchronize after writing this many bytes each. As the wait in a collective is limited
  /// (--timeout), a rank thus waits for another little longer than a disk needs for so many bytes.
  static constexpr uint64_t kPortion = 64 << 20;

  /// Prepares collectives, so all ranks must construct their writers at the same point. Only rank 0
  /// changes `folder`. All arguments must outlive this object.
  CheckpointWriter(std::span<const Program> programs, const RunIdentity &run,
                   CheckpointFolder &folder, Executor &executor, uint64_t portion = kPortion);

  /// Writes the checkpoint of `step` together with all other ranks. Once it returns true, the
  /// checkpoint is complete, on disk, and has its name. A value that is not finite is a failure, of
  /// exit status NotFinite. On failure stops all ranks with the reason; call
  /// `CheckpointFolder::removeLeftovers` afterwards.
  bool write(int64_t step);

private:
  /// A part of a tensor that this rank writes.
  struct Content {
    const NamedTensor *tensor = nullptr;
    /// Without padding.
    uint64_t bytes = 0;
  };

  /// A rank's report on its file: its bytes, its checksum in two halves, and 1 if it has a value
  /// that is not finite.
  using Receipt = std::array<int64_t, 4>;

  bool meet();
  /// Returns the part of a tensor that `rank` writes; none if another rank writes the same part.
  static std::optional<Region> partOf(const OwnedTensor &saved, int64_t rank);
  /// Copies a slab of a padded tensor, without padding, to `packed`.
  void pack(const Content &content, const Region &slab);
  Status writeShard(int64_t step);
  Status writePortion(int64_t step, uint64_t begin, uint64_t end);
  Status putPart(int64_t step, const Content &content, uint64_t begin, uint64_t end);
  Status putElements(int64_t step, const Content &content, std::span<const char> bytes,
                     uint64_t begin);
  Status put(std::span<const char> bytes);
  std::string header(int64_t step) const;
  bool areAllFinite();
  Manifest makeManifest(int64_t step) const;
  Status seal(int64_t step);

  const std::span<const Program> programs;
  /// That of this rank's class.
  const Program &program;
  /// Of all classes.
  const std::vector<OwnedTensor> tensors;
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
  /// The operand of the barrier, which carries no data.
  int32_t nothing = 0;
  StreamFile file;
  std::vector<char> packed;
  Checksum checksum;
  Receipt receipt = {};
  /// The receipts of all ranks.
  std::vector<Receipt> receipts;
  /// The first value of this rank that is not finite.
  std::optional<std::string> notFinite;
};

} // namespace weft::rt

#endif // WEFT_RT_CHECKPOINT_CHECKPOINTWRITER_H
