//===- OutputFile.h - a file that is there whole or not at all ------------===//
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

/// Brings a file, or the entries of a folder, to the disk.
std::error_code syncToDisk(const std::string &path);

/// A file under construction. It is written beside its place under a temporary name, brought to
/// the disk, and then renamed; until `commit` nothing changes at its place. A file that is never
/// committed is removed, also when the program is interrupted. For one thread.
class OutputFile {
public:
  /// Reserves the temporary name. Fails where nothing can be written at `path`, so that this is
  /// known before the work for it begins.
  static llvm::Expected<OutputFile> create(llvm::StringRef path);

  OutputFile(OutputFile &&other) noexcept;
  OutputFile &operator=(OutputFile &&) = delete;
  ~OutputFile();

  /// Where to write.
  const std::string &getTemporaryPath() const { return temporaryPath; }
  const std::string &getPath() const { return path; }

  /// Writes `text` as the whole contents.
  llvm::Error write(llvm::StringRef text);
  /// Puts the file in its place.
  llvm::Error commit();

private:
  OutputFile(std::string path, std::string temporaryPath)
      : path(std::move(path)), temporaryPath(std::move(temporaryPath)) {}

  /// `temporaryPath` is empty once the file is in its place.
  std::string path, temporaryPath;
};

} // namespace weft

#endif // WEFT_DRIVER_OUTPUTFILE_H
