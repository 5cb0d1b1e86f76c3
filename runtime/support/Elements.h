//===- Elements.h - floating-point types of checkpoints -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Conversions between what files of tensors hold and what programs train in.
// From BF16 and F16 to float32 every value is kept, so that it comes back by the
// same bits; the other way rounds to the nearest, to even where two are near.
//
// The functions keep no state: any number of threads may call them.
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

/// Bytes of one element.
int64_t sizeOf(FloatType type);

/// The least number that rounds to an infinity.
double leastTooLarge(FloatType type);

/// Reads `count` elements that lie `stride` elements apart, from anywhere in memory. F64 is
/// rounded.
void decode(FloatType type, const char *from, int64_t stride, int64_t count, float *to);

/// Writes `count` elements, `stride` elements apart.
void encode(FloatType type, const float *from, int64_t count, char *to, int64_t stride);

/// One element. A value that is not a number stays one, with the bits that there is room for.
float decodeF16(uint16_t bits);
uint16_t encodeF16(float value);

} // namespace weft::rt

#endif // WEFT_RT_SUPPORT_ELEMENTS_H
