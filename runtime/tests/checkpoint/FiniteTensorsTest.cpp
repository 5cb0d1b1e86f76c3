//===- FiniteTensorsTest.cpp - no file keeps numbers that are not finite --===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "checkpoint/FiniteTensors.h"

#include "support/Elements.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <vector>

using namespace weft::rt;

namespace {

TEST(FiniteTensors, TheFirstOfManyElementsIsFoundInEveryType) {
  for (ElementType type : {ElementType::F64, ElementType::F32, ElementType::BF16, ElementType::F16,
                           ElementType::F8E4M3, ElementType::F8E5M2}) {
    visitElement(type, [&]<typename T>(T) {
      // 448 is the largest of E4M3.
      std::vector<T> values(10000, T(-448.0F));
      // One byte off: files and portions do not align their elements.
      std::vector<char> memory(1 + values.size() * sizeof(T));
      auto bytes = std::span(memory).subspan(1);
      auto find = [&] {
        std::memcpy(bytes.data(), values.data(), bytes.size());
        return firstNotFinite(type, bytes);
      };
      EXPECT_FALSE(find());
      for (uint64_t index : {9999, 5000, 4096, 4095, 1, 0}) {
        values[index] = T(std::numeric_limits<float>::quiet_NaN());
        EXPECT_EQ(find(), index) << int(type);
      }
    });
  }
}

TEST(FiniteTensors, EveryPatternOfTwoBytesIsJudgedRight) {
  for (ElementType type : {ElementType::BF16, ElementType::F16}) {
    for (uint32_t bits = 0; bits < 0x10000; ++bits) {
      char bytes[2];
      std::memcpy(bytes, &bits, 2);
      ASSERT_EQ(!firstNotFinite(type, bytes), std::isfinite(elementAt(type, bytes, 0))) << bits;
    }
  }
}

TEST(FiniteTensors, EveryPatternOfOneByteIsJudgedRight) {
  for (ElementType type : {ElementType::F8E4M3, ElementType::F8E5M2}) {
    for (uint32_t bits = 0; bits < 0x100; ++bits) {
      char byte[1] = {char(bits)};
      ASSERT_EQ(!firstNotFinite(type, byte), std::isfinite(elementAt(type, byte, 0))) << bits;
    }
  }
}

TEST(FiniteTensors, WholeNumbersAreFinite) {
  const int64_t ones[] = {-1, -1};
  std::span<const char> bytes(reinterpret_cast<const char *>(ones), sizeof ones);
  EXPECT_FALSE(firstNotFinite(ElementType::I64, bytes));
  EXPECT_FALSE(firstNotFinite(ElementType::I32, bytes));
}

TEST(FiniteTensors, TheTextNamesTheElementOfTheWholeTensor) {
  float values[] = {1, 2, 3, -std::numeric_limits<float>::infinity()};
  std::span<const char> bytes(reinterpret_cast<const char *>(values), sizeof values);
  // Elements 5 to 8 of a region of [3, 4] at [10, 20].
  Region region = {{10, 20}, {3, 4}};
  EXPECT_EQ(notFiniteText("w", ElementType::F32, region, bytes, 5, 9),
            "after 9 steps 'w' has -inf at [12, 20], expected finite numbers");
  values[0] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(notFiniteText("w", ElementType::F32, region, bytes, 5, 9),
            "after 9 steps 'w' has inf at [11, 21], expected finite numbers");
  EXPECT_EQ(notFiniteText("s", ElementType::F32, {{}, {}}, bytes.first(4), 0, 1),
            "after 1 steps 's' has inf at [], expected finite numbers");
  EXPECT_FALSE(notFiniteText("w", ElementType::F32, region, bytes.subspan(4, 8), 6, 9));
}

} // namespace
