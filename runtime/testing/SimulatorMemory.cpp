//===- SimulatorMemory.cpp - memory that detects wrong uses -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "testing/SimulatorMemory.h"

#include "testing/SimulatorHandles.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>

using namespace weft::rt::cuda;

/// Sizes of a device's allocations are rounded up to multiples of this.
static constexpr uint64_t kUnit = 256;
/// The bytes of the guards before and behind each block.
static constexpr uint64_t kGuardBytes = 256;
static constexpr char kGuard = char(0xA5);

static uint64_t roundUp(uint64_t bytes) { return (bytes + kUnit - 1) / kUnit * kUnit; }

static bool isAll(const char *place, uint64_t bytes, char value) {
  return std::all_of(place, place + bytes, [&](char byte) { return byte == value; });
}

/// Reserves pages that take memory only once they are touched; null if the address space does not
/// suffice.
static char *mapLazily(uint64_t bytes) {
  void *place = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return place == MAP_FAILED ? nullptr : static_cast<char *>(place);
}

bool Memory::take(uint64_t bytes) {
  bool isThere = bytes <= left;
  left -= isThere ? bytes : 0;
  return isThere;
}

uint64_t Memory::allocate(uint64_t bytes, uint64_t call) {
  if (bytes > left || roundUp(bytes) > left) {
    return 0;
  }
  uint64_t whole = roundUp(bytes) + 2 * kGuardBytes;
  char *storage = isLazy ? mapLazily(whole) : static_cast<char *>(std::aligned_alloc(kUnit, whole));
  if (!storage) {
    return 0;
  }
  left -= roundUp(bytes);
  if (!isLazy) {
    std::memset(storage, kGuard, whole);
    std::memset(storage + kGuardBytes, kPoison, bytes);
  }
  Block block;
  block.bytes = bytes;
  block.call = call;
  block.place = storage + kGuardBytes;
  block.storage = {storage, [whole, isLazy = isLazy](char *place) {
                     isLazy ? void(munmap(place, whole)) : std::free(place);
                   }};
  uint64_t address = reinterpret_cast<uint64_t>(block.place) + bias();
  blocks.emplace(address, std::move(block));
  return address;
}

void Memory::free(uint64_t address) {
  Block &block = at(address);
  checkGuards(address);
  if (!isLazy) {
    std::memset(block.place, kPoison, block.bytes);
  }
  block.isFreed = true;
  left += roundUp(block.bytes);
}

/// Finds the last block that begins at or before `address`.
std::map<uint64_t, Memory::Block>::iterator Memory::below(uint64_t address) {
  auto after = blocks.upper_bound(address);
  return after == blocks.begin() ? blocks.end() : std::prev(after);
}

Memory::Block &Memory::at(uint64_t address) {
  holding(address, 0);
  auto found = below(address);
  if (found->first != address) {
    misuse("expected the beginning of an allocation, got byte ", address - found->first, " of one");
  }
  return found->second;
}

Memory::Block &Memory::holding(uint64_t address, uint64_t bytes) {
  uint64_t owner = address >> 56;
  if (device >= 0 && owner != 0 && owner != uint64_t(device + 1)) {
    misuse("expected an address of device ", device, ", got one of device ", owner - 1);
  }
  auto found = below(address);
  if (found == blocks.end() ||
      address - found->first > roundUp(found->second.bytes) + kGuardBytes) {
    device < 0 ? misuse("the host's memory at ", address, " is not pinned")
               : misuse("address ", address, " is in no allocation");
  }
  auto &[begin, block] = *found;
  if (block.isFreed) {
    misuse("address ", address, " is in an allocation that is freed");
  }
  uint64_t offset = address - begin;
  if (offset > block.bytes || bytes > block.bytes - offset) {
    misuse(bytes, " bytes from byte ", offset, " on end beyond an allocation of ", block.bytes,
           " bytes");
  }
  return block;
}

void Memory::noteWrite(uint64_t begin, uint64_t end) {
  if (begin == end) {
    return;
  }
  auto &written = holding(begin, end - begin).written;
  auto next = written.upper_bound(begin);
  if (next != written.begin() && std::prev(next)->second >= begin) {
    --next;
  }
  while (next != written.end() && next->first <= end) {
    begin = std::min(begin, next->first);
    end = std::max(end, next->second);
    next = written.erase(next);
  }
  written.emplace(begin, end);
}

bool Memory::isWritten(uint64_t begin, uint64_t end) {
  if (begin == end) {
    return true;
  }
  auto &written = holding(begin, end - begin).written;
  auto next = written.upper_bound(begin);
  return next != written.begin() && std::prev(next)->second >= end;
}

void Memory::forgetRegistrations() {
  for (auto &[address, block] : blocks) {
    block.registrations = 0;
  }
}

void Memory::checkGuards(uint64_t address) {
  if (isLazy) {
    return;
  }
  const Block &block = below(address)->second;
  uint64_t rest = roundUp(block.bytes) - block.bytes;
  if (!isAll(block.place - kGuardBytes, kGuardBytes, kGuard) ||
      !isAll(block.place + block.bytes, rest + kGuardBytes, kGuard)) {
    misuse("memory around an allocation of ", block.bytes, " bytes was written");
  }
}

char *Memory::place(uint64_t address) const { return reinterpret_cast<char *>(address - bias()); }

std::vector<const Memory::Block *> Memory::leftovers() const {
  std::vector<const Block *> found;
  for (const auto &[address, block] : blocks) {
    if (!block.isFreed) {
      found.push_back(&block);
    }
  }
  std::sort(found.begin(), found.end(),
            [](const Block *a, const Block *b) { return a->call < b->call; });
  return found;
}

void Memory::checkFreed() const {
  for (const auto &[address, block] : blocks) {
    if (!isLazy && block.isFreed && !isAll(block.place, block.bytes, char(kPoison))) {
      misuse("an allocation of ", block.bytes, " bytes was written after it was freed");
    }
  }
}
