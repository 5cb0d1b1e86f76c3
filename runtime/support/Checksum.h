//===- Checksum.h - what tells damaged files from whole ones ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_SUPPORT_CHECKSUM_H
#define WEFT_RT_SUPPORT_CHECKSUM_H

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace weft::rt {

/// A checksum of 128 bits.
struct Digest {
  uint64_t high = 0, low = 0;
  bool operator==(const Digest &) const = default;
};

/// "xxh3-128:" and 32 hexadecimal digits, those that `xxh128sum` prints.
std::string digestText(const Digest &digest);
/// Reads what `digestText` wrote; false on anything else.
bool parseDigest(const std::string &text, Digest &digest);

/// XXH3 with 128 bits (https://xxhash.com) of bytes that come in any portions. It finds accidents,
/// however small; it is no protection against somebody who wants to deceive. One thread at a time.
class Checksum {
public:
  Checksum();
  Checksum(Checksum &&) noexcept;
  Checksum &operator=(Checksum &&) noexcept;
  ~Checksum();

  void add(std::span<const char> bytes);
  /// Of all bytes so far.
  Digest digest() const;

private:
  struct State;
  std::unique_ptr<State> state;
};

/// Reads a whole file, without mapping it: a disk that cannot be read is an error then, not a
/// signal.
bool checksumFile(const std::string &path, uint64_t &bytes, Digest &digest, std::string &error);

} // namespace weft::rt

#endif // WEFT_RT_SUPPORT_CHECKSUM_H
