//===- Elements.cpp - elements of any type ------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "support/Elements.h"

#include <algorithm>
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

/// Finds the first element whose bits have all of `mask`, the bits of an infinity or NaN.
template <typename Word>
static std::optional<uint64_t> firstWith(Word mask, std::span<const char> bytes) {
  auto has = [&](uint64_t index) {
    Word word;
    std::memcpy(&word, bytes.data() + index * sizeof(Word), sizeof(Word));
    return (word & mask) == mask;
  };
  constexpr uint64_t kBlock = 4096; // Without an exit inside, the loop over it is vectorized.
  for (uint64_t begin = 0, count = bytes.size() / sizeof(Word); begin < count; begin += kBlock) {
    uint64_t end = std::min(begin + kBlock, count);
    unsigned any = 0;
    for (uint64_t i = begin; i < end; ++i) {
      any |= unsigned(has(i));
    }
    for (uint64_t i = begin; any && i < end; ++i) {
      if (has(i)) {
        return i;
      }
    }
  }
  return std::nullopt;
}

std::optional<uint64_t> weft::rt::firstNotFinite(ElementType type, std::span<const char> bytes) {
  switch (type) {
  case ElementType::F64:
    return firstWith<uint64_t>(0x7FF0000000000000, bytes);
  case ElementType::F32:
    return firstWith<uint32_t>(0x7F800000, bytes);
  case ElementType::BF16:
    return firstWith<uint16_t>(0x7F80, bytes);
  case ElementType::F16:
    return firstWith<uint16_t>(0x7C00, bytes);
  case ElementType::F8E4M3:
    return firstWith<uint8_t>(0x7F, bytes);
  case ElementType::F8E5M2:
    return firstWith<uint8_t>(0x7C, bytes);
  case ElementType::I64:
  case ElementType::I32:
    break;
  }
  return std::nullopt;
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
