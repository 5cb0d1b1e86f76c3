//===- Float16.h - numbers of 16 bits, of which 5 are the exponent's --------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_SUPPORT_FLOAT16_H
#define WEFT_RT_SUPPORT_FLOAT16_H

#include "support/Elements.h"

namespace weft::rt {

/// The half precision of IEEE 754: up to 65504, with 10 bits of fraction.
struct Float16 {
  uint16_t bits = 0;

  Float16() = default;
  /// Rounded to the nearest, of two the even one; beyond the greatest an infinity. NaN stays NaN.
  explicit Float16(float value) : bits(encodeF16(value)) {}

  explicit operator float() const { return decodeF16(bits); }
  explicit operator double() const { return double(float(*this)); }
};

} // namespace weft::rt

#endif // WEFT_RT_SUPPORT_FLOAT16_H
