//===- Elements.h - conversions of floating-point elements ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Conversions between the element types of tensor files and those that programs
// train in. Conversions from BF16 and F16 to float32 are exact and return the same
// bits when converted back; the others round to nearest, ties to even.
//
// The functions keep no state; any thread may call them.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_SUPPORT_ELEMENTS_H
#define WEFT_RT_SUPPORT_ELEMENTS_H

#include <cstdint>
#include <optional>
#include <string_view>

namespace weft::rt {

/// Types of parameters, by their names in safetensors files.
enum class FloatType { F64, F32, BF16, F16 };

std::optional<FloatType> floatTypeOf(std::string_view dtype);

/// Returns the bytes of one element.
int64_t sizeOf(FloatType type);

/// Returns the least number that rounds to infinity in `type`.
double leastTooLarge(FloatType type);

/// Converts `count` elements, `stride` elements apart, to float32. F64 is rounded; `from` need not
/// be aligned.
void decode(FloatType type, const char *from, int64_t stride, int64_t count, float *to);

/// Converts `count` elements from float32 and writes them `stride` elements apart.
void encode(FloatType type, const float *from, int64_t count, char *to, int64_t stride);

/// Convert one element. A NaN stays a NaN and keeps the fraction bits that fit.
float decodeF16(uint16_t bits);
uint16_t encodeF16(float value);

} // namespace weft::rt

#endif // WEFT_RT_SUPPORT_ELEMENTS_H
