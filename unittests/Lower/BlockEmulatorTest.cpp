//===- BlockEmulatorTest.cpp - tests of the emulator of a block ------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BlockEmulator.h"
#include "GuardedMemory.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>
#include <vector>

namespace weft::test {
namespace {

/// Returns the number that thread i reads after thread 95 - i has written it.
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

TEST(BlockEmulatorTest, AShuffleMeetsNoWarpBarrier) {
  EXPECT_NONFATAL_FAILURE(
      {
        std::mt19937 dice(1);
        runBlock(32, dice, [] {
          if (weft_device_thread() % 2 == 0) {
            weft_device_warp_barrier();
          } else {
            (void)weft_device_shuffle(0, 0);
          }
        });
      },
      "wait for others that do not come");
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

/// Each thread writes an element and reads that of `thread ^ mask`, between which it does `wait`.
void exchange(size_t mask, const std::function<void()> &wait) {
  std::mt19937 dice(1);
  std::vector<float> shared(64);
  auto *start = reinterpret_cast<const char *>(shared.data());
  watchShared(start, 64 * sizeof(float), sizeof(float));
  runBlock(64, dice, [&] {
    auto self = static_cast<size_t>(weft_device_thread());
    weft_test_touch(start + self * sizeof(float), sizeof(float), /*isWrite=*/1);
    wait();
    weft_test_touch(start + (self ^ mask) * sizeof(float), sizeof(float), /*isWrite=*/0);
  });
  forgetShared();
}

TEST(BlockEmulatorTest, WhoReadsMustWaitForWhoWrites) {
  exchange(40, [] { weft_device_barrier(); });
  exchange(9, [] { weft_device_warp_barrier(); });
  EXPECT_NONFATAL_FAILURE(exchange(9, [] {}), "neither waits for the other");
  // Of values only, no memory.
  EXPECT_NONFATAL_FAILURE(exchange(9, [] { (void)weft_device_shuffle(0, 9); }),
                          "neither waits for the other");
  // Of another warp.
  EXPECT_NONFATAL_FAILURE(exchange(40, [] { weft_device_warp_barrier(); }),
                          "and written by thread");
}

TEST(BlockEmulatorTest, WhoWritesMustWaitForWhoReads) {
  char shared[2] = {};
  auto run = [&](bool waits) {
    std::mt19937 dice(1);
    watchShared(shared, 2, 1);
    runBlock(64, dice, [&] {
      weft_test_touch(shared, 1, /*isWrite=*/0);
      if (waits) {
        weft_device_barrier();
      }
      if (weft_device_thread() == 33) {
        weft_test_touch(shared, 2, /*isWrite=*/1);
      }
    });
    forgetShared();
  };
  run(/*waits=*/true);
  EXPECT_NONFATAL_FAILURE(run(/*waits=*/false), "neither waits for the other");
}

TEST(BlockEmulatorTest, NobodyTouchesWhatIsNotShared) {
  char shared[4] = {};
  auto run = [&](int64_t at, int64_t bytes) {
    std::mt19937 dice(1);
    watchShared(shared + 1, 2, 1);
    runBlock(32, dice, [&] { weft_test_touch(shared + at, bytes, /*isWrite=*/0); });
    EXPECT_TRUE(wasSharedTouched());
    forgetShared();
    EXPECT_FALSE(wasSharedTouched());
  };
  run(1, 2);
  EXPECT_NONFATAL_FAILURE(run(0, 1), "reads what is no shared memory");
  EXPECT_NONFATAL_FAILURE(run(2, 2), "reads what is no shared memory");
  EXPECT_FATAL_FAILURE(weft_test_touch(nullptr, 1, 0), "where there is no block");
}

/// Takes more than a thread has.
[[gnu::noinline]] void takeStack() {
  volatile char most[80 << 10];
  for (size_t i = sizeof(most); i-- > 0;) {
    most[i] = 0;
  }
}

TEST(BlockEmulatorTest, AStackHasAnEnd) {
  EXPECT_NONFATAL_FAILURE(
      {
        std::mt19937 dice(1);
        runBlock(32, dice, [] {
          if (weft_device_thread() == 7) {
            takeStack();
          }
        });
        expectNoTouches();
      },
      "the stack of thread 7 was touched");
}

} // namespace
} // namespace weft::test
