//===- AlgorithmCache.h - keeps how matmuls are computed, in a file -------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A text: "weft product ways 2", a line for each matmul on each kind of device, and a checksum of
// all before. What is damaged or of another version is not used, and replaced. One process writes
// at a time, and readers see the old file or the new one.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_CUDA_ALGORITHMCACHE_H
#define WEFT_RT_BACKENDS_CUDA_ALGORITHMCACHE_H

#include "backends/cuda/DriverTable.h"

#include <map>
#include <string>
#include <utility>

namespace weft::rt::cuda {

/// All fields of a matmul, as text.
std::string keyOf(const Matmul &matmul);

/// "XDG_CACHE_HOME/weft/product-ways", or below HOME/.cache; empty where neither is set.
std::string defaultCacheFile();

class AlgorithmCache {
public:
  /// Adds what is in `file`; nothing if there is none. False, with why in `error`, where there is a
  /// file that cannot be used.
  bool read(const std::string &file, std::string &error);
  /// Writes all to `file`, with what others have put there since.
  bool write(const std::string &file, std::string &error);

  /// Null if there is none. `kind` is all that decides beside the matmul.
  const MatmulAlgorithm *find(const std::string &kind, const Matmul &matmul) const;
  void set(const std::string &kind, const Matmul &matmul, const MatmulAlgorithm &way);

private:
  bool parse(const std::string &text);
  std::string text() const;

  std::map<std::pair<std::string, std::string>, MatmulAlgorithm> ways;
};

} // namespace weft::rt::cuda

#endif // WEFT_RT_BACKENDS_CUDA_ALGORITHMCACHE_H
