//===- Checkpoints.h - what a run keeps, and goes on from -------------------===//
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

/// What --checkpoint-dir and its companions ask for; nothing without it. First `open` and `begin`
/// by one thread, then each rank's thread calls what takes its Executor.
class Checkpoints {
public:
  /// For the ranks of this process: rank 0's changes the folder, others read and write files in it.
  Checkpoints(const Program &program, const Options &options, RankRange ranks);

  /// Looks for the newest whole checkpoint, together with all other processes: rank 0's looks and
  /// tells. Warns of damaged ones that it passes over. Fails, on all, if there have been
  /// checkpoints and none is whole, if that one is not of this program, or if another run uses the
  /// folder.
  bool open(Backend &backend, std::string &error);

  /// Whether there is a checkpoint to go on from; then, the step to go on with and the folder.
  bool resumes() const { return found; }
  int64_t firstStep() const { return first; }
  std::string source() const { return folder.pathOf(first); }

  /// Checks that the run is the one that the checkpoint was made by, and makes the folder.
  /// `data` is what the run reads.
  bool begin(const std::optional<DataIdentity> &data, std::string &error);

  /// What there is to tell of that to the user; may be empty.
  const std::string &note() const { return remark; }

  /// Makes the rank ready to write, and puts what `resumes` into its arena. `executor` is prepared
  /// and has run its first section; it must outlive this.
  void prepareRank(Executor &executor);

  /// Whether a checkpoint is to be written when `step` steps are done, the last being `end`.
  bool isDue(int64_t step, int64_t end) const;

  /// Writes it, together with all other ranks. On failure has told the communicator.
  bool write(Executor &executor, int64_t step);

  /// For the user: where it is.
  std::string writtenText(int64_t step) const;

  /// After a failure: removes what is half written.
  void cleanUp();

private:
  bool look(std::string &error);
  bool findWhole(const std::vector<int64_t> &steps, std::string &error);
  bool follow(const std::string &step, std::string &error);

  const Program &program;
  const Options &options;
  const bool leads;
  RunIdentity run;
  CheckpointFolder folder;
  std::unique_ptr<CheckpointReader> reader;
  /// Ranks of this process that still read from `reader`; the last one closes its files.
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
