//===- ElementsTest.cpp - conversions of floating-point types -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "support/Elements.h"

#include "llvm/ADT/APFloat.h"

#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace weft::rt;

static uint16_t encodeBF16(float value) { return BFloat16(value).bits; }

static float decodeBF16(uint16_t bits) { return static_cast<float>(std::bit_cast<BFloat16>(bits)); }

/// `value` in another type by LLVM's own arithmetic, as bits.
static uint16_t converted(float value, const llvm::fltSemantics &type) {
  llvm::APFloat number(value);
  bool losesInfo = false;
  number.convert(type, llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  return static_cast<uint16_t>(number.bitcastToAPInt().getZExtValue());
}

TEST(Elements, EveryHalfComesBack) {
  for (uint32_t i = 0; i < 0x10000; ++i) {
    auto bits = static_cast<uint16_t>(i);
    EXPECT_EQ(encodeBF16(decodeBF16(bits)), bits);
    EXPECT_EQ(encodeF16(decodeF16(bits)), bits);
  }
}

TEST(Elements, HalvesMeanWhatTheyMust) {
  for (uint32_t i = 0; i < 0x10000; ++i) {
    llvm::APFloat bfloat(llvm::APFloat::BFloat(), llvm::APInt(16, i));
    llvm::APFloat half(llvm::APFloat::IEEEhalf(), llvm::APInt(16, i));
    if (!bfloat.isNaN()) {
      EXPECT_EQ(decodeBF16(uint16_t(i)), bfloat.convertToFloat());
    }
    if (!half.isNaN()) {
      EXPECT_EQ(decodeF16(uint16_t(i)), half.convertToFloat());
    }
  }
}

TEST(Elements, RoundsToTheNearest) {
  std::mt19937 random(1);
  for (int i = 0; i < 300000; ++i) {
    uint32_t bits = random();
    if (i % 3 == 0) { // Halfway between two numbers, or next to it.
      bits = (bits & 0xFFFFE000) | 0x1000 | (i % 2);
    }
    if (i % 3 == 1) { // Around the range of F16.
      bits = (bits & 0x807FFFFF) | (95 + random() % 50) << 23;
    }
    auto value = std::bit_cast<float>(bits);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(decodeBF16(encodeBF16(value))));
      EXPECT_TRUE(std::isnan(decodeF16(encodeF16(value))));
      continue;
    }
    EXPECT_EQ(encodeBF16(value), converted(value, llvm::APFloat::BFloat())) << value;
    EXPECT_EQ(encodeF16(value), converted(value, llvm::APFloat::IEEEhalf())) << value;
  }
}

TEST(Elements, TooLargeIsTheFirstThatRoundsToInfinity) {
  auto least = static_cast<float>(leastTooLarge(ElementType::F16));
  EXPECT_TRUE(std::isinf(decodeF16(encodeF16(least))));
  EXPECT_EQ(decodeF16(encodeF16(std::nextafter(least, 0.0F))), 65504);
  least = static_cast<float>(leastTooLarge(ElementType::BF16));
  EXPECT_TRUE(std::isinf(decodeBF16(encodeBF16(least))));
  EXPECT_FALSE(std::isinf(decodeBF16(encodeBF16(std::nextafter(least, 0.0F)))));
}

TEST(Elements, StridesAndUnalignedPlaces) {
  std::vector<float> values = {1, -2, 3, 0.5};
  for (auto type : {ElementType::F64, ElementType::F32, ElementType::BF16, ElementType::F16}) {
    std::vector<char> bytes(1 + 3 * 4 * sizeOf(type));
    std::vector<float> back(4);
    encode(type, values.data(), 4, bytes.data() + 1, 3);
    decode(type, bytes.data() + 1, 3, 4, back.data());
    EXPECT_EQ(back, values);
  }
}

TEST(Elements, Names) {
  EXPECT_EQ(floatTypeOf("BF16"), ElementType::BF16);
  EXPECT_EQ(floatTypeOf("F64"), ElementType::F64);
  EXPECT_EQ(floatTypeOf("I32"), std::nullopt);
  EXPECT_EQ(floatTypeOf(""), std::nullopt);
}

TEST(Elements, OneOfEachType) {
  for (const ElementTypeEntry &entry : kElementTypes) {
    EXPECT_EQ(elementTypeOf(entry.name), entry.type);
    std::vector<char> bytes(1 + 2 * entry.bytes);
    const float values[] = {1, -2};
    encode(entry.type, values, 2, bytes.data() + 1, 1);
    EXPECT_EQ(elementAt(entry.type, bytes.data() + 1, 1), -2) << entry.name;
    visitElement(entry.type, [&](auto element) { EXPECT_EQ(sizeof(element), entry.bytes); });
  }
  EXPECT_EQ(elementTypeOf("f8"), std::nullopt);
}
