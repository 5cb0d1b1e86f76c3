//===- AlgorithmCache.h - a file of the algorithms chosen for matmuls -----===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The file is a text: the line "weft product ways 3", a line for each matmul on each kind of
// device, and a checksum of the lines before. A damaged file, or one of another version, is
// ignored and replaced. One process writes at a time; readers see either the old file or the new
// one.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_CUDA_ALGORITHMCACHE_H
#define WEFT_RT_BACKENDS_CUDA_ALGORITHMCACHE_H

#include "backends/cuda/DriverTable.h"
#include "weft-rt/Status.h"

#include <map>
#include <string>
#include <utility>

namespace weft::rt::cuda {

/// Returns a text of all fields of `matmul`.
std::string keyOf(const Matmul &matmul);

/// Returns "XDG_CACHE_HOME/weft/product-ways", or the same below HOME/.cache; empty if neither is
/// set.
std::string defaultCacheFile();

class AlgorithmCache {
public:
  /// Adds the entries of `file`; a missing file has none. Fails if the file cannot be used.
  Status read(const std::string &file);
  /// Writes all entries to `file`, and keeps those that other processes have added to it.
  Status write(const std::string &file);

  /// Returns the algorithm for `matmul`, or null. `kind` names the device and the library's
  /// version.
  const MatmulAlgorithm *find(const std::string &kind, const Matmul &matmul) const;
  void set(const std::string &kind, const Matmul &matmul, const MatmulAlgorithm &way);

private:
  bool parse(const std::string &text);
  std::string text() const;

  std::map<std::pair<std::string, std::string>, MatmulAlgorithm> ways;
};

} // namespace weft::rt::cuda

#endif // WEFT_RT_BACKENDS_CUDA_ALGORITHMCACHE_H
