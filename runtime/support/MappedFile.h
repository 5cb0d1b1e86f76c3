//===- MappedFile.h - a file mapped for reading ---------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_SUPPORT_MAPPEDFILE_H
#define WEFT_RT_SUPPORT_MAPPEDFILE_H

#include "weft-rt/Status.h"

#include <algorithm>
#include <span>
#include <string>

namespace weft::rt {

/// A regular file mapped for reading. Shortening the file while it is mapped kills this process;
/// users must avoid that. Any thread may read.
class MappedFile {
public:
  MappedFile() = default;
  MappedFile(const MappedFile &) = delete;
  MappedFile &operator=(const MappedFile &) = delete;
  ~MappedFile();

  /// Maps the file; call it once. Fails if the file is missing, unreadable or not a regular file.
  Status open(const std::string &path);

  std::span<const char> bytes() const { return content; }

  /// Takes a part of the file out of this process's memory until somebody reads it again; the
  /// system still caches it. The part may have any bounds, and any thread may read it meanwhile.
  void release(std::span<const char> part) const;

  /// Calls `visit` with parts of `bytes`, one after the other, of at most `kPart` bytes, until it
  /// returns false, and releases each. REQUIRES: `bytes` lie in the file.
  template <typename Visit>
  void readInParts(std::span<const char> bytes, const Visit &visit) const {
    for (size_t at = 0; at < bytes.size(); at += kPart) {
      auto part = bytes.subspan(at, std::min(kPart, bytes.size() - at));
      bool goesOn = visit(part);
      release(part);
      if (!goesOn) {
        return;
      }
    }
  }
  static constexpr size_t kPart = size_t(4) << 20;

private:
  std::span<const char> content;
};

} // namespace weft::rt

#endif // WEFT_RT_SUPPORT_MAPPEDFILE_H
