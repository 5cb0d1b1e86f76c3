//===- Parts.h - loops over elements that threads share ----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_KERNELS_PARTS_H
#define WEFT_RT_KERNELS_PARTS_H

#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

namespace weft::rt::kernels {

/// Cuts [0, count) into contiguous parts, at most one for each of `threads` threads and none empty,
/// and calls `body(part, begin, end)` for each on a thread of its own, which must not throw.
/// Returns after all calls.
template <typename Body> void inParts(uint64_t count, int64_t threads, Body body) {
  auto parts = std::min(count, uint64_t(std::max<int64_t>(threads, 1)));
  if (parts == 1) {
    body(size_t(0), uint64_t(0), count);
    return;
  }
  std::vector<std::thread> team;
  team.reserve(parts);
  for (uint64_t part = 0; part < parts; ++part) {
    team.emplace_back([&body, part, begin = count * part / parts,
                       end = count * (part + 1) / parts] { body(size_t(part), begin, end); });
  }
  for (std::thread &thread : team) {
    thread.join();
  }
}

/// Threads for loops over `count` elements: one for few, which take less time than a thread's
/// start.
inline int64_t threadsFor(uint64_t count, int64_t threads) {
  return count < (uint64_t(1) << 16) ? 1 : threads;
}

} // namespace weft::rt::kernels

#endif // WEFT_RT_KERNELS_PARTS_H
