//===- OutputFolder.h - a folder that is written whole or not at all ------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DRIVER_OUTPUTFOLDER_H
#define WEFT_DRIVER_OUTPUTFOLDER_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>

namespace weft {

/// A folder under construction. The caller fills it under a temporary name in the same parent, and
/// `commit` renames it; until then nothing changes at `path`. A folder that is never committed is
/// removed with its contents. For one thread.
class OutputFolder {
public:
  /// Makes the temporary folder. Fails if `path` exists and is not an empty folder, or if its
  /// parent cannot be written.
  static llvm::Expected<OutputFolder> create(llvm::StringRef path);

  OutputFolder(OutputFolder &&other) noexcept;
  OutputFolder &operator=(OutputFolder &&) = delete;
  ~OutputFolder();

  /// The temporary path to write to.
  const std::string &getTemporaryPath() const { return temporaryPath; }

  /// Moves the folder to its place. REQUIRES: its files have been flushed to the disk.
  llvm::Error commit();

private:
  OutputFolder(std::string path, std::string temporaryPath)
      : path(std::move(path)), temporaryPath(std::move(temporaryPath)) {}

  std::string path;
  /// Empty if the folder has been moved to another OutputFolder.
  std::string temporaryPath;
};

} // namespace weft

#endif // WEFT_DRIVER_OUTPUTFOLDER_H
