//===- OutputFile.h - output files that appear only when complete ---------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_SUPPORT_OUTPUTFILE_H
#define WEFT_RT_SUPPORT_OUTPUTFILE_H

#include "weft-rt/Status.h"

#include <cstdint>
#include <span>
#include <string>

namespace weft::rt {

/// Fails if no file can be written at `path` now. Creates and removes "PATH.partial"; does not
/// touch a file at `path`.
Status checkWritable(const std::string &path);

/// Waits until the folder's entries are on disk (fsync).
Status syncFolder(const std::string &path);

/// Renames a file or folder that is complete and on disk to `to`, an entry of `folder`, and waits
/// until its name is on disk, too.
Status nameWhole(const std::string &from, const std::string &to, const std::string &folder);

/// Returns true if both paths name the same file, whether or not it exists.
bool isSameFile(const std::string &a, const std::string &b);

/// Writes "PATH.partial" and renames it to PATH once all bytes are on disk, so that PATH always
/// holds the complete old or new file. Writes devices and pipes directly. Only one thread may use
/// an object at a time.
class OutputFile {
public:
  OutputFile() = default;
  OutputFile(const OutputFile &) = delete;
  OutputFile &operator=(const OutputFile &) = delete;
  /// Removes "PATH.partial" unless `commit` succeeded.
  ~OutputFile();

  Status open(const std::string &path);
  Status write(std::span<const char> bytes);
  Status commit();

private:
  std::string path, partial;
  int descriptor = -1;
};

/// Writes a whole file through an OutputFile.
Status writeFile(const std::string &path, std::span<const char> bytes);

/// A growing file; readers see each write at once. Only one thread may use an object at a time.
class StreamFile {
public:
  StreamFile() = default;
  StreamFile(const StreamFile &) = delete;
  StreamFile &operator=(const StreamFile &) = delete;
  ~StreamFile();

  /// Opens the file, keeps its first `keep` bytes and appends behind them. Devices and pipes keep
  /// nothing.
  Status open(const std::string &path, uint64_t keep);
  bool isOpen() const { return descriptor >= 0; }
  /// Allocates nothing unless it fails.
  Status write(std::span<const char> bytes);
  /// Waits until all written bytes are on disk.
  Status sync();
  /// Closes the file; some disks report a failed write only here.
  Status close();

private:
  std::string path;
  int descriptor = -1;
};

} // namespace weft::rt

#endif // WEFT_RT_SUPPORT_OUTPUTFILE_H
