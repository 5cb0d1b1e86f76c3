//===- Checksum.h - checksums that reveal damaged files -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_SUPPORT_CHECKSUM_H
#define WEFT_RT_SUPPORT_CHECKSUM_H

#include "weft-rt/Status.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace weft::rt {

/// A checksum of 128 bits.
struct Digest {
  uint64_t high = 0, low = 0;
  bool operator==(const Digest &) const = default;
};

/// Returns "xxh3-128:" and the 32 hexadecimal digits that `xxh128sum` prints.
std::string digestText(const Digest &digest);
/// Reads the text that `digestText` wrote; returns nothing for any other text.
std::optional<Digest> parseDigest(const std::string &text);

/// The 128-bit XXH3 (https://xxhash.com) of bytes that arrive in portions of any size. It detects
/// accidental damage, not deliberate forgery. Only one thread may use an object at a time.
class Checksum {
public:
  Checksum();
  Checksum(Checksum &&) noexcept;
  Checksum &operator=(Checksum &&) noexcept;
  ~Checksum();

  void add(std::span<const char> bytes);
  /// Returns the checksum of all bytes added so far.
  Digest digest() const;

private:
  struct State;
  std::unique_ptr<State> state;
};

/// The size and the checksum of a file.
struct FileChecksum {
  uint64_t bytes = 0;
  Digest digest;
};

/// Reads a whole file. It does not map the file, so that an unreadable disk causes an error and not
/// a signal.
Result<FileChecksum> checksumFile(const std::string &path);

} // namespace weft::rt

#endif // WEFT_RT_SUPPORT_CHECKSUM_H
