//===- CheckedMath.h - sizes that cannot overflow ---------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Arithmetic on sizes that come from files. A result too large for 64 bits becomes
// `kTooLarge`, which exceeds every buffer and file: the comparison with the
// available room then refuses it, and callers need no separate overflow check.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_SUPPORT_CHECKEDMATH_H
#define WEFT_RT_SUPPORT_CHECKEDMATH_H

#include <cstdint>
#include <limits>
#include <span>

namespace weft::rt {

inline constexpr uint64_t kTooLarge = std::numeric_limits<uint64_t>::max();

inline uint64_t saturatingAdd(uint64_t a, uint64_t b) {
  return a > kTooLarge - b ? kTooLarge : a + b;
}

inline uint64_t saturatingMul(uint64_t a, uint64_t b) {
  return b != 0 && a > kTooLarge / b ? kTooLarge : a * b;
}

/// Returns the number of elements of a tensor; 0 if any dimension is 0. REQUIRES: no dimension is
/// negative.
inline uint64_t elementCount(std::span<const int64_t> shape) {
  uint64_t count = 1;
  for (int64_t size : shape) {
    if (size == 0) {
      return 0;
    }
    count = saturatingMul(count, uint64_t(size));
  }
  return count;
}

} // namespace weft::rt

#endif // WEFT_RT_SUPPORT_CHECKEDMATH_H
