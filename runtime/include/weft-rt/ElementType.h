//===- ElementType.h - the types of a program's elements ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_ELEMENTTYPE_H
#define WEFT_RT_ELEMENTTYPE_H

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>

namespace weft::rt {

/// Type of one element of a buffer. Programs store the number of the type.
enum class ElementType : uint8_t { F64, F32, I64, I32, BF16, F16, F8E4M3, F8E5M2 };

struct ElementTypeEntry {
  ElementType type;
  /// The name in texts, and the dtype in safetensors files.
  const char *name, *dtype;
  /// The bytes of one element.
  size_t bytes;
};

/// All element types, each at its number.
inline constexpr ElementTypeEntry kElementTypes[] = {
    {ElementType::F64, "f64", "F64", 8},           {ElementType::F32, "f32", "F32", 4},
    {ElementType::I64, "i64", "I64", 8},           {ElementType::I32, "i32", "I32", 4},
    {ElementType::BF16, "bf16", "BF16", 2},        {ElementType::F16, "f16", "F16", 2},
    {ElementType::F8E4M3, "f8e4m3", "F8_E4M3", 1}, {ElementType::F8E5M2, "f8e5m2", "F8_E5M2", 1},
};

constexpr size_t sizeOf(ElementType type) { return kElementTypes[size_t(type)].bytes; }
constexpr const char *nameOf(ElementType type) { return kElementTypes[size_t(type)].name; }

/// Returns true for types that are stored narrow but computed in f32: bf16 and f16.
constexpr bool isNarrow(ElementType type) {
  return type == ElementType::BF16 || type == ElementType::F16;
}
/// Returns true for FP8 types, which only matmuls and kernels that round to them support.
constexpr bool isFloat8(ElementType type) {
  return type == ElementType::F8E4M3 || type == ElementType::F8E5M2;
}
constexpr bool isFloat(ElementType type) {
  return type != ElementType::I64 && type != ElementType::I32;
}

/// Returns the type called `name`, if there is one.
constexpr std::optional<ElementType> elementTypeOf(std::string_view name) {
  for (const ElementTypeEntry &entry : kElementTypes) {
    if (name == entry.name) {
      return entry.type;
    }
  }
  return std::nullopt;
}

static_assert([] {
  for (size_t i = 0; i < std::size(kElementTypes); ++i) {
    if (size_t(kElementTypes[i].type) != i) {
      return false;
    }
  }
  return true;
}());

} // namespace weft::rt

#endif // WEFT_RT_ELEMENTTYPE_H
