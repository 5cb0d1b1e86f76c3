//===- SimulatorMemory.h - memory that detects wrong uses ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Addresses of a device's memory are invalid on the host, so host code that dereferences one
// crashes. To detect wrong uses, memory is poisoned until it is written, lies between guards, and
// is never reused after it is freed.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_TESTING_SIMULATORMEMORY_H
#define WEFT_RT_TESTING_SIMULATORMEMORY_H

#include "testing/SimulatorOrder.h"

#include <functional>
#include <map>
#include <memory>

namespace weft::rt::cuda {

/// The value of bytes that were never written. Numbers of such bytes are not finite.
inline constexpr int kPoison = 0xFF;

class Memory {
public:
  /// An allocated block.
  struct Block {
    uint64_t bytes = 0;
    /// The number of the call that made it.
    uint64_t call = 0;
    bool isFreed = false;
    /// True for memory of `allocateShared`, and the number of its registrations.
    bool isShared = false;
    uint64_t registrations = 0;
    /// The work that touches it.
    Clock uses;
    /// The written ranges, which do not overlap: begin address to end address.
    std::map<uint64_t, uint64_t> written = {};
    char *place = nullptr;
    std::unique_ptr<char, std::function<void(char *)>> storage = nullptr;
  };

  /// Allocates up to `limit` bytes, in the host's memory if `device` is negative. With `isLazy`,
  /// memory is not poisoned and has no guards.
  Memory(int64_t device, uint64_t limit, bool isLazy = false)
      : device(device), isLazy(isLazy), left(limit) {}

  uint64_t unused() const { return left; }
  /// Lowers the limit by `bytes`. Returns false if fewer are left.
  bool take(uint64_t bytes);
  /// Returns the address of a new block, or 0 if not enough is left.
  uint64_t allocate(uint64_t bytes, uint64_t call);
  /// REQUIRES: no unfinished work uses the block.
  void free(uint64_t address);
  /// Returns the block that begins at `address`; fails if there is none.
  Block &at(uint64_t address);
  /// Returns the block that holds all of these bytes; fails if there is none.
  Block &holding(uint64_t address, uint64_t bytes);

  void noteWrite(uint64_t begin, uint64_t end);
  /// Returns true if enqueued work writes all of these bytes.
  bool isWritten(uint64_t begin, uint64_t end);
  /// Forgets all registrations.
  void forgetRegistrations();
  /// Fails if the guards around the block were overwritten.
  void checkGuards(uint64_t address);

  /// Returns the host's address of `address`.
  char *place(uint64_t address) const;

  /// Returns the blocks that were not freed, oldest first.
  std::vector<const Block *> leftovers() const;
  /// Fails if freed memory was written to.
  void checkFreed() const;

private:
  uint64_t bias() const { return device < 0 ? 0 : uint64_t(device + 1) << 56; }
  std::map<uint64_t, Block>::iterator below(uint64_t address);

  int64_t device;
  bool isLazy;
  uint64_t left;
  std::map<uint64_t, Block> blocks;
};

} // namespace weft::rt::cuda

#endif // WEFT_RT_TESTING_SIMULATORMEMORY_H
