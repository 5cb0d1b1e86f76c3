//===- Float16.cpp - IEEE half precision --------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "support/Float16.h"

#include <bit>
#include <cmath>

using namespace weft::rt;

/// Returns `bits` without its last `count` bits, rounded to nearest, ties to even.
static uint32_t shiftRounded(uint32_t bits, int count) {
  uint32_t half = uint32_t(1) << (count - 1);
  uint32_t rest = bits & (2 * half - 1), kept = bits >> count;
  return kept + (rest > half || (rest == half && (kept & 1)));
}

float weft::rt::decodeF16(uint16_t bits) {
  uint32_t sign = uint32_t(bits & 0x8000) << 16, exponent = (bits >> 10) & 0x1F;
  uint32_t fraction = bits & 0x3FF;
  if (exponent == 0) { // Zero and what is below the normal numbers, multiples of 2^-24.
    float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
  }
  uint32_t wide = exponent == 0x1F ? 0xFF : exponent - 15 + 127;
  return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}

uint16_t weft::rt::encodeF16(float value) {
  auto bits = std::bit_cast<uint32_t>(value);
  uint32_t sign = (bits >> 16) & 0x8000, magnitude = bits & 0x7FFFFFFF;
  if (std::isnan(value)) {
    uint32_t fraction = (magnitude >> 13) & 0x3FF;
    return static_cast<uint16_t>(sign | 0x7C00 | (fraction ? fraction : 0x200));
  }
  if (magnitude >= 0x477FF000) { // From 65520 on, the nearest would be 65536.
    return static_cast<uint16_t>(sign | 0x7C00);
  }
  if (magnitude >= 0x38800000) { // 2^-14, the least normal number. Carries go into the exponent.
    return static_cast<uint16_t>(sign | shiftRounded(magnitude - ((127 - 15) << 23), 13));
  }
  // Counts multiples of 2^-24. The addition of 2^-1 * 2^24 ulps rounds, because the last place of
  // the sum is 2^-24.
  float shifted = std::bit_cast<float>(magnitude) + 0.5F;
  return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3F000000));
}
