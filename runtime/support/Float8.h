//===- Float8.h - FP8 numbers -----------------------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The formats E4M3 and E5M2 of P. Micikevicius et al., "FP8 formats for deep
// learning", 2022; see docs/Numerics.md.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_SUPPORT_FLOAT8_H
#define WEFT_RT_SUPPORT_FLOAT8_H

#include "weft-rt/ElementType.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace weft::rt {

/// The bits of the number 1 and of the greatest finite number of an FP8 type.
constexpr uint8_t oneF8(ElementType type) { return type == ElementType::F8E4M3 ? 0x38 : 0x3C; }
constexpr uint8_t greatestF8(ElementType type) { return type == ElementType::F8E4M3 ? 0x7E : 0x7B; }

/// Converts an FP8 number to float32 exactly.
inline float decodeF8(ElementType type, uint8_t bits) {
  int fractionBits = type == ElementType::F8E4M3 ? 3 : 2,
      bias = type == ElementType::F8E4M3 ? 7 : 15;
  int magnitude = bits & 0x7F, exponent = magnitude >> fractionBits;
  int fraction = magnitude & ((1 << fractionBits) - 1);
  float sign = bits & 0x80 ? -1.0F : 1.0F;
  if (magnitude > greatestF8(type)) {
    bool isInfinity = type == ElementType::F8E5M2 && fraction == 0;
    return sign * (isInfinity ? std::numeric_limits<float>::infinity()
                              : std::numeric_limits<float>::quiet_NaN());
  }
  int whole = exponent == 0 ? fraction : fraction + (1 << fractionBits);
  return sign * std::ldexp(float(whole), std::max(exponent, 1) - bias - fractionBits);
}

/// Rounds to nearest, ties to even; too large values become the greatest finite number. A NaN stays
/// a NaN. Slow, as it tries every FP8 number: not for large tensors.
inline uint8_t encodeF8(ElementType type, float value) {
  uint8_t sign = std::signbit(value) ? 0x80 : 0;
  if (std::isnan(value)) {
    return sign | 0x7F;
  }
  uint8_t nearest = 0;
  for (uint8_t bits = 1; bits <= greatestF8(type); ++bits) {
    float before = std::abs(std::abs(value) - decodeF8(type, nearest));
    float now = std::abs(std::abs(value) - decodeF8(type, bits));
    nearest = now < before || (now == before && bits % 2 == 0) ? bits : nearest;
  }
  return sign | nearest;
}

/// A number of an FP8 type.
template <ElementType type> struct Float8 {
  uint8_t bits = 0;

  Float8() = default;
  explicit Float8(float value) : bits(encodeF8(type, value)) {}

  explicit operator float() const { return decodeF8(type, bits); }
  explicit operator double() const { return double(decodeF8(type, bits)); }
};
using Float8E4M3 = Float8<ElementType::F8E4M3>;
using Float8E5M2 = Float8<ElementType::F8E5M2>;

} // namespace weft::rt

#endif // WEFT_RT_SUPPORT_FLOAT8_H
