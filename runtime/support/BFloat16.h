//===- BFloat16.h - numbers of 16 bits with the range of float32 -----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_SUPPORT_BFLOAT16_H
#define WEFT_RT_SUPPORT_BFLOAT16_H

#include <bit>
#include <cstdint>

namespace weft::rt {

/// The upper half of a float32: its sign and exponent, and 7 bits of its fraction.
struct BFloat16 {
  uint16_t bits = 0;

  BFloat16() = default;
  /// Rounds to nearest, ties to even. A NaN stays a NaN and keeps its upper fraction bits.
  explicit BFloat16(float value) {
    auto whole = std::bit_cast<uint32_t>(value);
    bits = uint16_t((whole + 0x7FFF + (whole >> 16 & 1)) >> 16);
    if (value != value) {
      bits = uint16_t(whole >> 16);
      // An all-zero fraction would mean infinity.
      bits |= bits & 0x7F ? 0 : 0x40;
    }
  }

  explicit operator float() const { return std::bit_cast<float>(uint32_t(bits) << 16); }
  explicit operator double() const { return double(float(*this)); }
};

} // namespace weft::rt

#endif // WEFT_RT_SUPPORT_BFLOAT16_H
