//===- SimulatorMemory.h - memory that tells how it is used --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Addresses of a device's memory are no addresses of the host: who follows one in the host's code
// is stopped by the processor. Memory is poisoned until it is written, stands between guards, and
// is not given out again once it is freed, so that a use of it is seen.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_TESTING_SIMULATORMEMORY_H
#define WEFT_RT_TESTING_SIMULATORMEMORY_H

#include "testing/SimulatorOrder.h"

#include <functional>
#include <map>
#include <memory>

namespace weft::rt::cuda {

/// Bytes of memory that nothing was written to. Numbers of them are not finite.
inline constexpr int kPoison = 0xFF;

class Memory {
public:
  /// A block that was given out.
  struct Block {
    uint64_t bytes = 0;
    /// The number of the call that made it.
    uint64_t call = 0;
    bool isFreed = false;
    /// Whether it is memory that other devices may be given, and how often it was registered.
    bool isShared = false;
    uint64_t registrations = 0;
    /// Work that touches it.
    Clock uses;
    /// Where bytes have been written: ends by begins, which are addresses and apart.
    std::map<uint64_t, uint64_t> written = {};
    char *place = nullptr;
    std::unique_ptr<char, std::function<void(char *)>> storage = nullptr;
  };

  /// Of the host if `device` is negative. Gives out no more than `limit`.
  /// What is `lazy` is not poisoned and has no guards.
  Memory(int64_t device, uint64_t limit, bool isLazy = false)
      : device(device), isLazy(isLazy), left(limit) {}

  uint64_t unused() const { return left; }
  /// Has so many less to give out from here on, unless there are not so many.
  bool take(uint64_t bytes);
  /// 0 where not so much is left.
  uint64_t allocate(uint64_t bytes, uint64_t call);
  /// REQUIRES: no work uses it any more.
  void free(uint64_t address);
  /// The block that begins at `address`.
  Block &at(uint64_t address);
  /// The block that holds all of these bytes.
  Block &holding(uint64_t address, uint64_t bytes);

  void noteWrite(uint64_t begin, uint64_t end);
  /// Whether all these bytes have been written, by what is enqueued.
  bool isWritten(uint64_t begin, uint64_t end);
  /// Nobody uses it by a registration any more.
  void forgetRegistrations();
  /// Fails if somebody has written around the block.
  void checkGuards(uint64_t address);

  /// Where the host finds it.
  char *place(uint64_t address) const;

  /// Blocks that nobody has freed, the oldest first.
  std::vector<const Block *> leftovers() const;
  /// Fails if somebody has written to memory after it was freed.
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
