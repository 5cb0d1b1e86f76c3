//===- GuardedMemoryTest.cpp - tests of guards ------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GuardedMemory.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

namespace weft::test {
namespace {

/// Reads and writes a byte, which no compiler may omit.
void touch(volatile char *byte) { *byte = *byte; }

TEST(GuardedMemoryTest, LiesAsItIsAskedFor) {
  GuardedMemory end("a", 20, 16, Place::AtEnd, kNoNumber);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(end.get() + 32) % roundToPages(1), 0u);
  GuardedMemory begin("b", 20, 16, Place::AtBegin, kNoNumber);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(begin.get()) % roundToPages(1), 0u);
  for (int64_t i = 0; i < 20; ++i) {
    EXPECT_EQ(begin.get()[i], kNoNumber);
    touch(&end.get()[i]);
  }
  expectNoTouches();
  end.expectWithin();
}

TEST(GuardedMemoryTest, TellsWhatWasTouched) {
  GuardedMemory end("operand 3", 20, 4, Place::AtEnd, 0);
  GuardedMemory begin("operand 4", 20, 4, Place::AtBegin, 0);
  touch(end.get() + 20);
  EXPECT_NONFATAL_FAILURE(expectNoTouches(), "operand 3 was touched at byte 20");
  touch(begin.get() - 1);
  EXPECT_NONFATAL_FAILURE(expectNoTouches(), "operand 4 was touched at byte -1");
  // Closed again.
  touch(begin.get() - 8);
  EXPECT_NONFATAL_FAILURE(expectNoTouches(), "operand 4 was touched at byte -8");
}

TEST(GuardedMemoryTest, TellsWhatWasTouchedOfMemoryThatGoes) {
  EXPECT_NONFATAL_FAILURE(
      {
        GuardedMemory memory("operand 0", 64, 64, Place::AtEnd, 0);
        touch(memory.get() + 64);
      },
      "operand 0 was touched at byte 64");
}

TEST(GuardedMemoryTest, TellsWhatTheSystemDoesNotGuard) {
  GuardedMemory memory("result 0", 64, 64, Place::AtBegin, 0);
  // Pages begin elsewhere.
  EXPECT_NONFATAL_FAILURE(closeGuard("result 2", memory.get() + 1, memory.get()),
                          "result 2 has no guard: Invalid argument");
  dropGuard(memory.get() + 1);
}

TEST(GuardedMemoryTest, TellsWhatRanWhenTheProcessEnds) {
  size_t bytes = roundToPages(1);
  void *nobodys = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(nobodys, MAP_FAILED);
  EXPECT_DEATH(
      {
        nameRunning("kernel 7");
        touch(static_cast<char *>(nobodys));
      },
      "nobody's was touched by kernel 7");
  munmap(nobodys, bytes);
}

TEST(GuardedMemoryTest, TellsWhatWasWrittenWithoutAGuard) {
  GuardedMemory memory("result 1", 20, 16, Place::AtEnd, kNoNumber);
  memory.get()[21] = 0;
  EXPECT_NONFATAL_FAILURE(memory.expectWithin(), "result 1 was written at byte 21");
}

} // namespace
} // namespace weft::test
