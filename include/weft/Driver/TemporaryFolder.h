//===- TemporaryFolder.h - a folder that is always removed ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DRIVER_TEMPORARYFOLDER_H
#define WEFT_DRIVER_TEMPORARYFOLDER_H

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/Error.h"

#include <string>
#include <sys/types.h>

namespace weft {

/// A temporary folder for one command. The destructor removes it with its contents. If the process
/// ends in any other way, even by a signal that no process can catch, a second process removes the
/// folder. For one thread.
class TemporaryFolder {
public:
  TemporaryFolder() = default;
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;
  /// Removes the folder, and returns when it is gone.
  ~TemporaryFolder();

  /// Makes a folder whose name begins with `prefix`, where the system keeps temporary folders.
  /// Fails where the system cannot. REQUIRES: the process has only one thread, and this is called
  /// once.
  llvm::Error create(llvm::StringRef prefix);

  std::string getPath() const { return path.str().str(); }
  std::string file(llvm::StringRef name) const { return (path + "/" + name).str(); }

private:
  llvm::SmallString<128> path;
  /// The socket to the second process, which removes the folder when this end closes.
  int socket = -1;
  pid_t keeper = -1;
};

} // namespace weft

#endif // WEFT_DRIVER_TEMPORARYFOLDER_H
