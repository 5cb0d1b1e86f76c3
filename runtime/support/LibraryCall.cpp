//===- LibraryCall.cpp - the small memory that a library's call takes -----===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "support/LibraryCall.h"

using namespace weft::rt;

#ifdef WEFT_SANITIZED

LibraryCall::LibraryCall() = default;
LibraryCall::~LibraryCall() = default;

#else

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace {

constexpr size_t kUnit = __STDCPP_DEFAULT_NEW_ALIGNMENT__;

struct alignas(64) Block {
  /// The call that has the block, if any, and the memory in it that is not deleted.
  std::atomic<uint32_t> users = 0;
  /// The bytes that are taken; only the call's thread uses it.
  size_t taken = 0;
  alignas(64) char bytes[LibraryCall::kBytes] = {};
};

// Pages that no call has used take no memory.
constinit Block blocks[LibraryCall::kBlocks];

/// The block of the thread's running call, and the number of its last block.
constinit thread_local Block *current = nullptr;
constinit thread_local size_t last = 0;

bool claim(Block &block) {
  uint32_t none = 0;
  return block.users.load(std::memory_order_relaxed) == 0 &&
         block.users.compare_exchange_strong(none, 1, std::memory_order_acquire);
}

void release(Block &block) { block.users.fetch_sub(1, std::memory_order_release); }

/// Returns the block that `memory` is in, or null.
Block *blockOf(const void *memory) {
  auto begin = reinterpret_cast<uintptr_t>(blocks), at = reinterpret_cast<uintptr_t>(memory);
  return at - begin < sizeof blocks ? &blocks[(at - begin) / sizeof(Block)] : nullptr;
}

/// Returns memory of the running call's block, or null.
void *takeFromBlock(size_t bytes) {
  Block *block = current;
  if (!block || bytes > LibraryCall::kBytes) {
    return nullptr;
  }
  size_t whole = (bytes + kUnit - 1) / kUnit * kUnit;
  if (whole > LibraryCall::kBytes - block->taken) {
    return nullptr;
  }
  char *memory = block->bytes + block->taken;
  block->taken += whole;
  block->users.fetch_add(1, std::memory_order_relaxed);
  return memory;
}

} // namespace

LibraryCall::LibraryCall() {
  for (size_t tried = 0; tried < kBlocks; ++tried) {
    size_t number = (last + tried) % kBlocks;
    if (claim(blocks[number])) {
      last = number;
      current = &blocks[number];
      current->taken = 0;
      return;
    }
  }
}

LibraryCall::~LibraryCall() {
  if (Block *block = current) {
    current = nullptr;
    release(*block);
  }
}

[[gnu::weak]] void *operator new(size_t bytes) {
  if (void *memory = takeFromBlock(bytes)) {
    return memory;
  }
  for (;;) {
    if (void *memory = std::malloc(bytes > 0 ? bytes : 1)) {
      return memory;
    }
    std::new_handler handler = std::get_new_handler();
    if (!handler) {
      throw std::bad_alloc();
    }
    handler();
  }
}

[[gnu::weak]] void operator delete(void *memory) noexcept {
  if (Block *block = blockOf(memory)) {
    release(*block);
  } else {
    std::free(memory);
  }
}

[[gnu::weak]] void operator delete(void *memory, size_t) noexcept { operator delete(memory); }

#endif
