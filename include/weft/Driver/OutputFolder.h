//===- OutputFolder.h - a folder that is there whole or not at all --------===//
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

/// A folder under construction. The caller fills it beside its place under a temporary name, and
/// `commit` renames it; until then nothing changes at its place. A folder that is never committed
/// is removed with its contents. For one thread.
class OutputFolder {
public:
  /// Makes the temporary folder. Fails where there is something at `path` already, other than an
  /// empty folder, or where nothing can be written beside it.
  static llvm::Expected<OutputFolder> create(llvm::StringRef path);

  OutputFolder(OutputFolder &&other) noexcept;
  OutputFolder &operator=(OutputFolder &&) = delete;
  ~OutputFolder();

  /// Where to write.
  const std::string &getTemporaryPath() const { return temporaryPath; }

  /// Puts the folder in its place. Files in it must be on the disk already.
  llvm::Error commit();

private:
  OutputFolder(std::string path, std::string temporaryPath)
      : path(std::move(path)), temporaryPath(std::move(temporaryPath)) {}

  std::string path;
  /// Empty once committed.
  std::string temporaryPath;
};

} // namespace weft

#endif // WEFT_DRIVER_OUTPUTFOLDER_H
