//===- OutputFile.h - files that are whole or not there ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_SUPPORT_OUTPUTFILE_H
#define WEFT_RT_SUPPORT_OUTPUTFILE_H

#include <cstdint>
#include <span>
#include <string>

namespace weft::rt {

/// Whether a file at `path` could be written now. Creates and removes "PATH.partial"; leaves what
/// is at `path` alone.
bool checkWritable(const std::string &path, std::string &error);

/// Waits until the names in a folder are on disk.
bool syncFolder(const std::string &path, std::string &error);

/// Whether two paths, existing or not, are the same file.
bool isSameFile(const std::string &a, const std::string &b);

/// Writes "PATH.partial" and renames it to PATH when all is on disk, so that PATH is always the old
/// file or the new one. Devices and pipes are written directly. One thread at a time.
class OutputFile {
public:
  OutputFile() = default;
  OutputFile(const OutputFile &) = delete;
  OutputFile &operator=(const OutputFile &) = delete;
  /// Without `commit` before, what was written is removed.
  ~OutputFile();

  bool open(const std::string &path, std::string &error);
  bool write(std::span<const char> bytes, std::string &error);
  bool commit(std::string &error);

private:
  std::string path, partial;
  int descriptor = -1;
};

/// Writes all of a file by an OutputFile.
bool writeFile(const std::string &path, std::span<const char> bytes, std::string &error);

/// A file that grows, what is written being visible to readers at once. One thread at a time.
class StreamFile {
public:
  StreamFile() = default;
  StreamFile(const StreamFile &) = delete;
  StreamFile &operator=(const StreamFile &) = delete;
  ~StreamFile();

  /// Keeps the first `keep` bytes of what may be there, and writes behind them. Nothing is kept of
  /// a device or pipe.
  bool open(const std::string &path, uint64_t keep, std::string &error);
  bool isOpen() const { return descriptor >= 0; }
  /// Allocates nothing unless it fails.
  bool write(std::span<const char> bytes, std::string &error);
  /// Waits until what was written is on disk.
  bool sync(std::string &error);
  /// Some disks report an error only here.
  bool close(std::string &error);

private:
  std::string path;
  int descriptor = -1;
};

} // namespace weft::rt

#endif // WEFT_RT_SUPPORT_OUTPUTFILE_H
