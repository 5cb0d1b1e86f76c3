//===- Elements.h - elements of any type --------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads, writes and converts elements whose type is known when a program runs.
// Conversions from BF16 and F16 to float32 are exact and return the same bits when
// converted back; the others round to nearest, ties to even.
//
// The functions keep no state; any thread may call them.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_SUPPORT_ELEMENTS_H
#define WEFT_RT_SUPPORT_ELEMENTS_H

#include "support/BFloat16.h"
#include "support/Float16.h"
#include "support/Float8.h"
#include "weft-rt/ElementType.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace weft::rt {

/// Calls `visit` with an element of the C++ type that `type` is stored in, and returns the result.
template <typename Visit> decltype(auto) visitElement(ElementType type, Visit &&visit) {
  switch (type) {
  case ElementType::F64:
    return visit(double());
  case ElementType::F32:
    return visit(float());
  case ElementType::I64:
    return visit(int64_t());
  case ElementType::I32:
    return visit(int32_t());
  case ElementType::BF16:
    return visit(BFloat16());
  case ElementType::F16:
    return visit(Float16());
  case ElementType::F8E4M3:
    return visit(Float8E4M3());
  case ElementType::F8E5M2:
    break;
  }
  return visit(Float8E5M2());
}

/// Returns the type that safetensors files call `dtype` if parameters may have it: F64, F32, BF16
/// or F16.
std::optional<ElementType> floatTypeOf(std::string_view dtype);

/// Returns the least number that rounds to infinity in `type`, one of those of `floatTypeOf`.
double leastTooLarge(ElementType type);

/// Returns element `index` of an array, which need not be aligned.
double elementAt(ElementType type, const void *elements, uint64_t index);

/// Returns the index of the first element that is infinite or NaN. `bytes` are whole elements,
/// which need not be aligned.
std::optional<uint64_t> firstNotFinite(ElementType type, std::span<const char> bytes);

/// Converts `count` elements, `stride` elements apart, to float32. F64 is rounded; `from` need not
/// be aligned.
void decode(ElementType type, const char *from, int64_t stride, int64_t count, float *to);

/// Converts `count` elements from float32 and writes them `stride` elements apart.
void encode(ElementType type, const float *from, int64_t count, char *to, int64_t stride);

} // namespace weft::rt

#endif // WEFT_RT_SUPPORT_ELEMENTS_H
