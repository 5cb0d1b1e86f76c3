//===- Float16.h - IEEE half precision ------------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_SUPPORT_FLOAT16_H
#define WEFT_RT_SUPPORT_FLOAT16_H

#include <cstdint>

namespace weft::rt {

/// Convert one number. A NaN stays a NaN and keeps the fraction bits that fit.
float decodeF16(uint16_t bits);
uint16_t encodeF16(float value);

/// A number in the half precision of IEEE 754: 5 exponent bits, 10 fraction bits, up to 65504.
struct Float16 {
  uint16_t bits = 0;

  Float16() = default;
  /// Rounds to nearest, ties to even; too large values become infinite. A NaN stays a NaN.
  explicit Float16(float value) : bits(encodeF16(value)) {}

  explicit operator float() const { return decodeF16(bits); }
  explicit operator double() const { return double(float(*this)); }
};

} // namespace weft::rt

#endif // WEFT_RT_SUPPORT_FLOAT16_H
