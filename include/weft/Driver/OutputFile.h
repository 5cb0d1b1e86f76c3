//===- OutputFile.h - a file that is written whole or not at all ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DRIVER_OUTPUTFILE_H
#define WEFT_DRIVER_OUTPUTFILE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>

namespace weft {

/// A temporary file in the folder of another, for what must be renamed or may be large. It is
/// removed at the end, also when a signal interrupts the program. For one thread.
class FileBeside {
public:
  /// Creates "PATH.PROCESS.tmp": compilations that write to `path` at the same time have different
  /// ones.
  static llvm::Expected<FileBeside> create(llvm::StringRef path);

  FileBeside(FileBeside &&other) noexcept;
  FileBeside &operator=(FileBeside &&) = delete;
  ~FileBeside();

  const std::string &getPath() const { return path; }

private:
  explicit FileBeside(std::string path) : path(std::move(path)) {}

  /// Empty if another object has taken the file over.
  std::string path;
};

/// Moves a file or folder that is complete to `path`, in the same folder, and waits until this is
/// on disk: whoever finds `path` finds all of it, also after a power failure.
llvm::Error moveToPlace(const std::string &temporaryPath, const std::string &path);

/// A file under construction. The caller, a linker for example, writes it under a temporary name in
/// the same folder; `commit` moves it to its place, and until then nothing changes at `path`. A
/// file that is never committed is removed. For one thread.
class OutputFile {
public:
  /// Creates the temporary file. Fails if `path` cannot be written, so that callers know before
  /// they begin a long computation.
  static llvm::Expected<OutputFile> create(llvm::StringRef path);

  /// The temporary path to write to.
  const std::string &getTemporaryPath() const { return temporary.getPath(); }
  const std::string &getPath() const { return path; }

  /// Writes `text` as the whole contents.
  llvm::Error write(llvm::StringRef text);
  /// Moves the file to its place.
  llvm::Error commit() { return moveToPlace(temporary.getPath(), path); }

private:
  OutputFile(std::string path, FileBeside temporary)
      : path(std::move(path)), temporary(std::move(temporary)) {}

  std::string path;
  FileBeside temporary;
};

} // namespace weft

#endif // WEFT_DRIVER_OUTPUTFILE_H
