//===- Elements.cpp - conversions of floating-point elements --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "support/Elements.h"

#include "support/BFloat16.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

using namespace weft::rt;

namespace {

constexpr const char *kNames[] = {"F64", "F32", "BF16", "F16"};

template <typename Stored, typename Convert>
void decodeAll(const char *from, int64_t stride, int64_t count, float *to, Convert convert) {
  for (int64_t i = 0; i < count; ++i) {
    Stored stored; // Files do not align their tensors.
    std::memcpy(&stored, from + i * stride * static_cast<int64_t>(sizeof(Stored)), sizeof(Stored));
    to[i] = convert(stored);
  }
}

template <typename Stored, typename Convert>
void encodeAll(const float *from, int64_t count, char *to, int64_t stride, Convert convert) {
  for (int64_t i = 0; i < count; ++i) {
    Stored stored = convert(from[i]);
    std::memcpy(to + i * stride * static_cast<int64_t>(sizeof(Stored)), &stored, sizeof(Stored));
  }
}

/// Returns `bits` without its last `count` bits, rounded to nearest, ties to even.
uint32_t shiftRounded(uint32_t bits, int count) {
  uint32_t half = uint32_t(1) << (count - 1);
  uint32_t rest = bits & (2 * half - 1), kept = bits >> count;
  return kept + (rest > half || (rest == half && (kept & 1)));
}

} // namespace

std::optional<FloatType> weft::rt::floatTypeOf(std::string_view dtype) {
  for (FloatType type : {FloatType::F64, FloatType::F32, FloatType::BF16, FloatType::F16}) {
    if (dtype == kNames[static_cast<int>(type)]) {
      return type;
    }
  }
  return std::nullopt;
}

int64_t weft::rt::sizeOf(FloatType type) {
  return type == FloatType::F64 ? 8 : type == FloatType::F32 ? 4 : 2;
}

double weft::rt::leastTooLarge(FloatType type) {
  // Halfway between the largest number and the next power of two.
  switch (type) {
  case FloatType::F64:
    return std::numeric_limits<double>::infinity();
  case FloatType::F32:
    return 0x1.FFFFFFp127;
  case FloatType::BF16:
    return 0x1.FFp127;
  case FloatType::F16:
    break;
  }
  return 0x1.FFEp15;
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

void weft::rt::decode(FloatType type, const char *from, int64_t stride, int64_t count, float *to) {
  switch (type) {
  case FloatType::F64:
    return decodeAll<double>(from, stride, count, to,
                             [](double value) { return static_cast<float>(value); });
  case FloatType::F32:
    return decodeAll<uint32_t>(from, stride, count, to,
                               [](uint32_t bits) { return std::bit_cast<float>(bits); });
  case FloatType::BF16:
    return decodeAll<BFloat16>(from, stride, count, to,
                               [](BFloat16 value) { return static_cast<float>(value); });
  case FloatType::F16:
    return decodeAll<uint16_t>(from, stride, count, to, decodeF16);
  }
}

void weft::rt::encode(FloatType type, const float *from, int64_t count, char *to, int64_t stride) {
  switch (type) {
  case FloatType::F64:
    return encodeAll<double>(from, count, to, stride,
                             [](float value) { return static_cast<double>(value); });
  case FloatType::F32:
    return encodeAll<float>(from, count, to, stride, [](float value) { return value; });
  case FloatType::BF16:
    return encodeAll<BFloat16>(from, count, to, stride,
                               [](float value) { return BFloat16(value); });
  case FloatType::F16:
    return encodeAll<uint16_t>(from, count, to, stride, encodeF16);
  }
}
