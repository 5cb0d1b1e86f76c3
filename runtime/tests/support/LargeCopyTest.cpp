//===- LargeCopyTest.cpp - copies that no cache could hold ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "support/LargeCopy.h"

#include <gtest/gtest.h>

#include <vector>

using namespace weft::rt;

TEST(LargeCopy, CopiesTheseBytesFromAndToAnyPlace) {
  constexpr size_t kLongest = 300, kOffsets = 70;
  std::vector<char> from(kOffsets + kLongest);
  for (size_t i = 0; i < from.size(); ++i) {
    from[i] = char(i * 7 + 1);
  }
  for (size_t bytes = 0; bytes <= kLongest; bytes += bytes < 140 ? 1 : 23) {
    for (size_t offset = 0; offset < kOffsets; ++offset) {
      size_t source = (offset * 5) % kOffsets;
      std::vector<char> to(kOffsets + kLongest, 'x'), wanted = to;
      std::copy_n(&from[source], bytes, &wanted[offset]);
      copyPastCaches(&to[offset], &from[source], bytes);
      ASSERT_EQ(to, wanted) << bytes << " bytes from " << source << " to " << offset;
    }
  }
}

TEST(LargeCopy, KnowsACache) { EXPECT_GE(sharedCacheBytes(), size_t(1) << 20); }
