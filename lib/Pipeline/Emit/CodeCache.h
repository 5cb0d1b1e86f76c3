//===- CodeCache.h - code that earlier compilations made ------------------===//
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

/// The hexadecimal hash of `parts`, each with its length, so that no two lists share one text.
std::string hashParts(llvm::ArrayRef<llvm::StringRef> parts);

/// What makes code here: LLVM, as it is loaded, and the sources of this phase. Part of every key.
std::string hashOfTools();

/// Code that was made once, kept in a folder under a key that names all that it was made from.
///
/// Any number of threads and processes may use one folder at the same time. An entry ends with a
/// checksum: a damaged one is removed and made again. A folder that cannot be used costs time, and
/// no compilation fails for it: `use().problem` says what is wrong.
class CodeCache {
public:
  /// Keeps nothing if `folder` is empty. The folder is made when the first entry is written.
  explicit CodeCache(llvm::StringRef folder) : folder(folder) {}

  /// Returns the code of `key`, from the folder or else by `make`. Fails only where `make` does.
  llvm::Expected<std::string> get(llvm::StringRef key,
                                  llvm::function_ref<llvm::Expected<std::string>()> make);

  /// Removes the entries that were not used for longest until the folder holds at most 2 GiB, and
  /// those that were not used for 30 days. Looks at the folder once in 20 minutes at most.
  void prune() const;

  /// How often entries were found so far, and what was wrong with the folder.
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
