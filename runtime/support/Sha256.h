//===- Sha256.h - keyed hashes and random numbers -------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// SHA-256 (FIPS 180-4) and HMAC (RFC 2104) with it. By these, processes that share a secret
// recognize each other. The time that a hash takes depends only on the number of bytes.
//
// Any thread may call these functions.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_SUPPORT_SHA256_H
#define WEFT_RT_SUPPORT_SHA256_H

#include "weft-rt/Status.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace weft::rt {

/// A hash, a key, or a number that is used once.
using Bytes32 = std::array<uint8_t, 32>;

/// Returns the bytes of a value or of an array of such.
template <typename T> std::span<const char> bytesOf(const T &value) {
  auto bytes = std::as_bytes(std::span(&value, 1));
  return {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
}

/// The SHA-256 of bytes that arrive in portions of any size.
class Sha256 {
public:
  Sha256 &add(std::span<const char> bytes);
  /// Returns the hash of all bytes added. Call it once, as the last.
  Bytes32 finish();

private:
  void mix(const uint8_t *block);

  static constexpr size_t kBlockBytes = 64;
  std::array<uint32_t, 8> state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                   0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, kBlockBytes> rest = {};
  uint64_t count = 0;

  friend class Hmac;
};

/// The HMAC-SHA-256 of bytes that arrive in portions of any size. Portions leave no trace in the
/// result: use it only where the length of all but the last is known.
class Hmac {
public:
  explicit Hmac(std::span<const char> key);
  Hmac &add(std::span<const char> bytes);
  /// Returns the code of all bytes added. Call it once, as the last.
  Bytes32 finish();

private:
  Sha256 inner, outer;
};

/// Compares in a time that does not depend on the values.
bool isEqualInConstantTime(const Bytes32 &a, const Bytes32 &b);

/// Returns 32 bytes that nobody can predict, from the system. Waits at most until the system has
/// started its generator.
Result<Bytes32> randomBytes();

/// "0a1b": two digits for each byte.
std::string hexText(std::span<const uint8_t> bytes);

} // namespace weft::rt

#endif // WEFT_RT_SUPPORT_SHA256_H
