//===- CollectedBytesTest.cpp - checks what rank 0 gets from the others ---===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "execution/CollectedBytes.h"

#include "kernels/LoneRank.h"

#include <gtest/gtest.h>

using namespace weft::rt;

namespace {

TEST(CollectedBytesTest, AValueIsReadWhole) {
  kernels::LoneRank link(0);
  int64_t sent = 5, read = 0;
  EXPECT_TRUE(readValue(link, 1, {reinterpret_cast<const char *>(&sent), sizeof sent}, read));
  EXPECT_EQ(read, 5);
  EXPECT_FALSE(link.stopped());
}

TEST(CollectedBytesTest, AnotherSizeFailsTheRun) {
  for (std::string bytes : {"", "short", "too long for it"}) {
    kernels::LoneRank link(0);
    int64_t read = 7;
    EXPECT_FALSE(readValue(link, 3, bytes, read));
    EXPECT_EQ(read, 7);
    EXPECT_EQ(link.failure(),
              "rank 3 has sent " + std::to_string(bytes.size()) + " bytes to rank 0, expected 8");
  }
}

} // namespace
