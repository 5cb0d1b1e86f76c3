//===- LibraryCallTest.cpp - the small memory that a library's call takes -===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "support/LibraryCall.h"

#include <cstring>
#include <gtest/gtest.h>
#include <new>
#include <optional>
#include <thread>
#include <vector>

using namespace weft::rt;

// Sanitizers have operators of their own.
#ifndef WEFT_SANITIZED

/// Takes memory, writes to all of it, and returns its address.
static char *take(size_t bytes) {
  auto *memory = static_cast<char *>(operator new(bytes));
  std::memset(memory, 1, bytes);
  return memory;
}

TEST(LibraryCall, MemoryComesFromOneBlock) {
  char *before = nullptr;
  for (int i = 0; i < 3; ++i) {
    LibraryCall call;
    char *first = take(100), *second = take(1), *third = take(32);
    EXPECT_EQ(second - first, 112);
    EXPECT_EQ(third - second, 16);
    EXPECT_TRUE(i == 0 || first == before); // The block is free again after each call.
    before = first;
    operator delete(second);
    operator delete(first, size_t(100));
    operator delete(third);
  }
}

TEST(LibraryCall, WhatHasNoRoomComesFromTheHeap) {
  LibraryCall call;
  char *first = take(LibraryCall::kBytes - 16), *second = take(16), *third = take(1);
  EXPECT_EQ(second - first, ptrdiff_t(LibraryCall::kBytes) - 16);
  EXPECT_GT(std::abs(third - first), ptrdiff_t(LibraryCall::kBytes * LibraryCall::kBlocks));
  for (char *memory : {first, second, third}) {
    operator delete(memory);
  }
}

TEST(LibraryCall, MemoryMayOutliveItsCall) {
  char *kept = nullptr, *next = nullptr;
  {
    LibraryCall call;
    kept = take(8);
  }
  {
    LibraryCall call;
    next = take(8);
    EXPECT_NE(next, kept);
    operator delete(next);
  }
  EXPECT_EQ(*kept, 1);
  std::thread([&] { operator delete(kept); }).join();
}

TEST(LibraryCall, MoreCallsThanBlocksUseTheHeap) {
  std::vector<char *> kept;
  for (size_t i = 0; i < LibraryCall::kBlocks + 2; ++i) {
    LibraryCall call;
    kept.push_back(take(8));
  }
  for (char *memory : kept) {
    operator delete(memory);
  }
  LibraryCall call;
  char *memory = take(8);
  EXPECT_EQ(take(8) - memory, 16); // There are blocks again; the second stays in this one.
}

TEST(LibraryCall, ThreadsHaveBlocksOfTheirOwn) {
  LibraryCall call;
  char *mine = take(8), *other = nullptr;
  std::thread([&] {
    std::optional<LibraryCall> theirs(std::in_place);
    other = take(8);
    theirs.reset();
    operator delete(other);
  }).join();
  EXPECT_NE(mine, other);
  operator delete(mine);
}

#endif
