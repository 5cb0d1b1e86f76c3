//===- CollectedBytes.h - checks what rank 0 gets from the others ---------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For receivers of Communicator::collect: bytes of another rank are used only if they have the
// expected size.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_EXECUTION_COLLECTEDBYTES_H
#define WEFT_RT_EXECUTION_COLLECTEDBYTES_H

#include "support/Text.h"
#include "weft-rt/Backend.h"

#include <cstring>
#include <type_traits>

namespace weft::rt {

/// Returns true if the bytes of `rank` are `expected` ones; else fails the run.
inline bool hasSize(Communicator &link, int64_t rank, std::span<const char> bytes,
                    size_t expected) {
  return bytes.size() == expected || link.fail(concat("rank ", rank, " has sent ", bytes.size(),
                                                      " bytes to rank 0, expected ", expected));
}

/// Sets `value` to the one that `rank` has sent, if its bytes are one; else fails the run.
template <typename T>
bool readValue(Communicator &link, int64_t rank, std::span<const char> bytes, T &value) {
  static_assert(std::is_trivially_copyable_v<T>);
  if (!hasSize(link, rank, bytes, sizeof value)) {
    return false;
  }
  std::memcpy(&value, bytes.data(), sizeof value);
  return true;
}

} // namespace weft::rt

#endif // WEFT_RT_EXECUTION_COLLECTEDBYTES_H
