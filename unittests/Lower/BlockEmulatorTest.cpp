//===- BlockEmulatorTest.cpp - what the emulator of a block sees -----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BlockEmulator.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>
#include <vector>

namespace weft::test {
namespace {

/// What thread i reads of the number that thread 95 - i has written.
std::vector<int64_t> readOfOthers(bool waits) {
  std::mt19937 dice(1);
  std::vector<int64_t> shared(96, -1), read(96, -1);
  runBlock(96, dice, [&] {
    auto self = static_cast<size_t>(weft_device_thread());
    shared[self] = static_cast<int64_t>(self);
    if (waits) {
      weft_device_barrier();
    }
    read[self] = shared[95 - self];
  });
  return read;
}

TEST(BlockEmulatorTest, ThreadsSeeWhatTheyWaitFor) {
  std::vector<int64_t> read = readOfOthers(/*waits=*/true);
  for (int64_t i = 0; i < 96; ++i) {
    EXPECT_EQ(read[static_cast<size_t>(i)], 95 - i);
  }
  EXPECT_NE(readOfOthers(/*waits=*/false), read);
}

TEST(BlockEmulatorTest, ThreadsOfAWarpExchange) {
  std::mt19937 dice(1);
  std::vector<int32_t> got(64);
  runBlock(64, dice, [&] {
    auto self = static_cast<int32_t>(weft_device_thread());
    got[static_cast<size_t>(self)] = weft_device_shuffle(self, 4);
  });
  for (int32_t i = 0; i < 64; ++i) {
    EXPECT_EQ(got[static_cast<size_t>(i)], i ^ 4);
  }
}

TEST(BlockEmulatorTest, AWaitThatNeverEndsFails) {
  EXPECT_NONFATAL_FAILURE(
      {
        std::mt19937 dice(1);
        runBlock(32, dice, [] {
          if (weft_device_thread() != 0) {
            weft_device_barrier();
          }
        });
      },
      "wait for others that do not come");
}

} // namespace
} // namespace weft::test
