//===- MappedFile.h - a file mapped for reading ---------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_SUPPORT_MAPPEDFILE_H
#define WEFT_RT_SUPPORT_MAPPEDFILE_H

#include "weft-rt/Status.h"

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

private:
  std::span<const char> content;
};

} // namespace weft::rt

#endif // WEFT_RT_SUPPORT_MAPPEDFILE_H
