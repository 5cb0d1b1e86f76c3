//===- CheckpointFolder.h - the folder of a run's checkpoints -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   DIR/step-00000120/           a checkpoint; it has this name only once complete
//   DIR/.writing-step-00000130/  a checkpoint that is being written
//   DIR/.removing-step-00000110/ a checkpoint that is being removed
//   DIR/LATEST                   the name of the newest checkpoint, for people and scripts
//   DIR/.lock                    locked by the run that writes here
//
// docs/Checkpoints.md documents the order of writes, and the state after a kill or
// a power cut.
//
// Only one thread may use an object at a time; while ranks run, that of rank 0.
// After `open` any thread may call the functions that only return names.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_CHECKPOINT_CHECKPOINTFOLDER_H
#define WEFT_RT_CHECKPOINT_CHECKPOINTFOLDER_H

#include "weft-rt/Status.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weft::rt {

class CheckpointFolder {
public:
  CheckpointFolder() = default;
  CheckpointFolder(const CheckpointFolder &) = delete;
  CheckpointFolder &operator=(const CheckpointFolder &) = delete;
  /// Unlocks the folder. Any end of the process unlocks it, too.
  ~CheckpointFolder();

  /// Locks the folder if it exists, and removes leftovers of dead runs. Fails if another run has
  /// locked it.
  Status open(const std::string &path);

  /// Sets the folder, without locking it, for a process that only reads and writes files in it;
  /// another process has locked it.
  void name(const std::string &path) { this->path = path; }

  /// Makes and locks the folder if it did not exist at `open`.
  Status create();

  /// Returns the steps of all folders with the name of a checkpoint, newest first, complete or not.
  Result<std::vector<int64_t>> list() const;

  /// Returns the first line of LATEST; nothing if there is no such file.
  std::optional<std::string> latest() const;

  /// Returns "step-00000120".
  static std::string nameOf(int64_t step);
  /// Returns the step of a checkpoint's name; nothing for other names.
  static std::optional<int64_t> stepOf(const std::string &name);
  /// Returns "DIR/step-00000120".
  std::string pathOf(int64_t step) const;
  /// Returns the path at which the checkpoint of `step` is written.
  std::string writingPath(int64_t step) const;

  /// Makes the folder `writingPath`.
  Status begin(int64_t step);

  /// Renames the checkpoint in `writingPath` to its final name. All its files must be complete and
  /// on disk. Removes a damaged checkpoint of that name.
  Status commit(int64_t step);

  /// Removes the checkpoints before that of `step`, except for the newest `keep - 1`; those of
  /// `damaged` steps do not count.
  Status prune(int64_t step, int64_t keep, const std::vector<int64_t> &damaged);

  /// Removes half written and half removed checkpoints. No rank may be running.
  Status removeLeftovers();

private:
  Status lock();
  Status discard(int64_t step);
  std::string inside(const std::string &name) const { return path + "/" + name; }

  std::string path;
  int lockFile = -1;
};

} // namespace weft::rt

#endif // WEFT_RT_CHECKPOINT_CHECKPOINTFOLDER_H
