//===- CheckpointFolder.h - the folder that a run keeps its checkpoints in --===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   DIR/step-00000120/           a checkpoint; it has this name only when it is whole
//   DIR/.writing-step-00000130/  one that is being written
//   DIR/.removing-step-00000110/ one that is being removed
//   DIR/LATEST                   the name of the newest one, for people and scripts
//   DIR/.lock                    locked by the run that writes here
//
// docs/Checkpoints.md says in which order things are written, and what a kill or a
// power cut leaves.
//
// One thread at a time; while ranks run, that of rank 0. The functions that only
// make names may be called by any thread after `open`.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_CHECKPOINT_CHECKPOINTFOLDER_H
#define WEFT_RT_CHECKPOINT_CHECKPOINTFOLDER_H

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
  /// Unlocks the folder, as does the end of the process in whatever way.
  ~CheckpointFolder();

  /// Locks the folder, if it is there, and removes what dead runs left in it. Fails if another run
  /// has locked it.
  bool open(const std::string &path, std::string &error);

  /// Names the folder, for a process that only reads and writes files in it. Another one has
  /// locked it.
  void name(const std::string &path) { this->path = path; }

  /// Makes and locks the folder, if `open` did not find it.
  bool create(std::string &error);

  /// The steps of all that are named as checkpoints, newest first; whole or not.
  bool list(std::vector<int64_t> &steps, std::string &error) const;

  /// The first line of LATEST; nothing if there is no such file.
  std::optional<std::string> latest() const;

  /// "step-00000120" and "DIR/step-00000120".
  static std::string nameOf(int64_t step);
  /// The step that a name stands for, if it is the name of a checkpoint.
  static std::optional<int64_t> stepOf(const std::string &name);
  std::string pathOf(int64_t step) const;
  /// Where the checkpoint of `step` is to be written.
  std::string writingPath(int64_t step) const;

  /// Makes the folder `writingPath`.
  bool begin(int64_t step, std::string &error);

  /// Gives the checkpoint in `writingPath` its name. All its files must be whole and on disk. What
  /// has that name already, which is a damaged one, is removed.
  bool commit(int64_t step, std::string &error);

  /// Removes the checkpoints before the one of `step` apart from the newest `keep - 1`; those of
  /// `damaged` steps do not count.
  bool prune(int64_t step, int64_t keep, const std::vector<int64_t> &damaged, std::string &error);

  /// Removes what is half written or half removed. No rank may be running.
  bool removeLeftovers(std::string &error);

private:
  bool lock(std::string &error);
  bool discard(int64_t step, std::string &error);
  std::string inside(const std::string &name) const { return path + "/" + name; }

  std::string path;
  int lockFile = -1;
};

} // namespace weft::rt

#endif // WEFT_RT_CHECKPOINT_CHECKPOINTFOLDER_H
