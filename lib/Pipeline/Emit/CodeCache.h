//===- CodeCache.h - a cache of generated code ----------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_EMIT_CODECACHE_H
#define WEFT_LIB_PIPELINE_EMIT_CODECACHE_H

#include "weft/Pipeline/Emit/Emit.h"
#include "llvm/Support/Error.h"

#include <mutex>
#include <string>

namespace weft {

/// Returns the key of code that is made from `parts`: a hexadecimal hash of these, each with its
/// length, and of the tools that make code here: LLVM as it is loaded, and this phase's sources.
std::string keyOf(llvm::ArrayRef<llvm::StringRef> parts);

/// A cache of generated code in a folder. A key names everything that the code was made from.
///
/// Any number of threads and processes may use one folder at the same time. An entry ends with a
/// checksum: a damaged one is removed and made again. A folder that cannot be used makes no
/// compilation fail: `use().problem` holds the error.
class CodeCache {
public:
  /// Keeps nothing if `folder` is empty. The first entry creates the folder.
  explicit CodeCache(llvm::StringRef folder) : folder(folder) {}

  /// Returns the code of `key`, from the folder or else from `make`. Fails only if `make` does.
  llvm::Expected<std::string> get(llvm::StringRef key,
                                  llvm::function_ref<llvm::Expected<std::string>()> make);

  /// Removes entries that were unused for 30 days, and then the least recently used until the
  /// folder holds at most 2 GiB. Scans the folder at most every 20 minutes.
  void prune() const;

  /// Returns the number of hits so far, and the first error with the folder.
  CacheUse use() const;

private:
  std::optional<std::string> find(llvm::StringRef key);
  void put(llvm::StringRef key, llvm::StringRef code, double seconds);
  void note(llvm::Error problem);

  std::string folder;
  mutable std::mutex mutex;
  CacheUse used;
};

} // namespace weft

#endif // WEFT_LIB_PIPELINE_EMIT_CODECACHE_H
