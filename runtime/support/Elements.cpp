//===- Elements.cpp - elements of any type ------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "support/Elements.h"

#include <cstring>
#include <limits>
#include <type_traits>

using namespace weft::rt;

std::optional<ElementType> weft::rt::floatTypeOf(std::string_view dtype) {
  for (const ElementTypeEntry &entry : kElementTypes) {
    if (dtype == entry.dtype && isFloat(entry.type) && !isFloat8(entry.type)) {
      return entry.type;
    }
  }
  return std::nullopt;
}

double weft::rt::leastTooLarge(ElementType type) {
  // Halfway between the largest number and the next power of two.
  switch (type) {
  case ElementType::F32:
    return 0x1.FFFFFFp127;
  case ElementType::BF16:
    return 0x1.FFp127;
  case ElementType::F16:
    return 0x1.FFEp15;
  default:
    return std::numeric_limits<double>::infinity();
  }
}

double weft::rt::elementAt(ElementType type, const void *elements, uint64_t index) {
  return visitElement(type, [&]<typename T>(T element) {
    std::memcpy(&element, static_cast<const char *>(elements) + index * sizeof(T), sizeof(T));
    return double(element);
  });
}

void weft::rt::decode(ElementType type, const char *from, int64_t stride, int64_t count,
                      float *to) {
  visitElement(type, [&]<typename T>(T element) {
    for (int64_t i = 0; i < count; ++i) { // Files do not align their tensors.
      std::memcpy(&element, from + i * stride * int64_t(sizeof(T)), sizeof(T));
      to[i] = float(element);
    }
  });
}

void weft::rt::encode(ElementType type, const float *from, int64_t count, char *to,
                      int64_t stride) {
  visitElement(type, [&]<typename T>(T element) {
    for (int64_t i = 0; i < count; ++i) {
      element = T(from[i]);
      std::memcpy(to + i * stride * int64_t(sizeof(T)), &element, sizeof(T));
    }
  });
}
