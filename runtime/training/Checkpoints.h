//===- Checkpoints.h - writes and resumes from checkpoints ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_TRAINING_CHECKPOINTS_H
#define WEFT_RT_TRAINING_CHECKPOINTS_H

#include "checkpoint/CheckpointReader.h"
#include "checkpoint/CheckpointWriter.h"
#include "training/Options.h"

#include <atomic>

namespace weft::rt {

/// Implements --checkpoint-dir and its related options; does nothing without them. First, one
/// thread calls `open` and `begin`; then each rank's thread calls the functions that take its
/// Executor.
class Checkpoints {
public:
  /// Serves the ranks of this process. Rank 0's process changes the folder; others only read and
  /// write files in it.
  Checkpoints(std::span<const Program> programs, const Options &options, RankRange ranks);

  /// Finds the newest complete checkpoint, together with all other processes: rank 0's process
  /// searches and tells the others. Warns of damaged checkpoints that it skips. Fails in all
  /// processes if all checkpoints are damaged, if the newest complete one is not of this program,
  /// or if another run uses the folder.
  Status open(Backend &backend);

  /// Return whether the run resumes from a checkpoint and, if so, the step to continue with and the
  /// checkpoint's folder.
  bool resumes() const { return found; }
  int64_t firstStep() const { return first; }
  std::string source() const { return folder.pathOf(first); }

  /// Makes the folder, and checks that this run continues the run that wrote the checkpoint. `data`
  /// describes the data that this run reads.
  Status begin(const std::optional<DataIdentity> &data);

  /// Returns a note on that for the user; may be empty.
  const std::string &note() const { return remark; }

  /// Prepares the rank for writing, and loads the checkpoint into its arena if the run `resumes`.
  /// `executor` must be prepared, have run `init`, and outlive this object.
  void prepareRank(Executor &executor);

  /// Returns true if a checkpoint is due after `step` of `end` steps.
  bool isDue(int64_t step, int64_t end) const;

  /// Writes a checkpoint together with all other ranks. On failure tells the communicator and
  /// returns false.
  bool write(Executor &executor, int64_t step);

  /// Returns the line on the written checkpoint, for the user.
  std::string writtenText(int64_t step) const;

  /// Removes half written checkpoints after a failure.
  void cleanUp();

private:
  Status look();
  Status findWhole(const std::vector<int64_t> &steps);
  Status follow(const std::string &step);

  const std::span<const Program> programs;
  const Options &options;
  const bool leads;
  RunIdentity run;
  CheckpointFolder folder;
  std::unique_ptr<CheckpointReader> reader;
  /// The ranks of this process that still read from `reader`; the last closes its files.
  std::atomic<int64_t> readers;
  /// By rank.
  std::vector<std::unique_ptr<CheckpointWriter>> writers;
  std::vector<int64_t> damaged;
  std::string remark;
  int64_t first = 0;
  bool found = false;
};

} // namespace weft::rt

#endif // WEFT_RT_TRAINING_CHECKPOINTS_H
