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
#include <system_error>

namespace weft {

/// Flushes a file, or the entries of a folder, to the disk.
std::error_code syncToDisk(const std::string &path);

/// A file under construction. The caller writes it under a temporary name in the same folder;
/// `commit` flushes it to the disk and renames it, and until then nothing changes at `path`. A file
/// that is never committed is removed, also when a signal interrupts the program. For one thread.
class OutputFile {
public:
  /// Creates the temporary file. Fails if `path` cannot be written, so that callers know before
  /// they begin a long computation.
  static llvm::Expected<OutputFile> create(llvm::StringRef path);

  OutputFile(OutputFile &&other) noexcept;
  OutputFile &operator=(OutputFile &&) = delete;
  ~OutputFile();

  /// The temporary path to write to.
  const std::string &getTemporaryPath() const { return temporaryPath; }
  const std::string &getPath() const { return path; }

  /// Writes `text` as the whole contents.
  llvm::Error write(llvm::StringRef text);
  /// Moves the file to its place.
  llvm::Error commit();

private:
  OutputFile(std::string path, std::string temporaryPath)
      : path(std::move(path)), temporaryPath(std::move(temporaryPath)) {}

  /// `temporaryPath` is empty once the file is in its place.
  std::string path, temporaryPath;
};

} // namespace weft

#endif // WEFT_DRIVER_OUTPUTFILE_H
