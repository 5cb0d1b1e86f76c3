//===- Sizes.h - the cases of the benchmark of collectives ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The same for our backends and for plain calls of MPI: float32, and a size that is what the larger
// of operand and result holds on each rank.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_BENCHMARKS_COLLECTIVES_SIZES_H
#define WEFT_BENCHMARKS_COLLECTIVES_SIZES_H

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <vector>

namespace weft::bench {

inline constexpr std::array<const char *, 4> kKinds = {"all-reduce", "reduce-scatter", "all-gather",
                                                       "all-to-all"};
inline constexpr std::array<int64_t, 6> kSizes = {1 << 10, 1 << 14, 1 << 16,
                                                  1 << 18, 1 << 22, 1 << 26};

/// Elements of the operand of one rank.
inline int64_t operandElements(size_t kind, int64_t bytes, int64_t ranks) {
  return bytes / int64_t(sizeof(float)) / (kKinds[kind][4] == 'g' ? ranks : 1);
}

/// Calls `once` often enough for the clock, after a few times that are not measured. `once`
/// returns whether it went well. Every rank must do as many.
template <typename Once> double secondsOf(int64_t bytes, const Once &once) {
  int64_t times = std::clamp<int64_t>((int64_t(1) << 27) / bytes, 3, 2000);
  for (int64_t i = 0; i < 1 + times / 10; ++i) {
    if (!once()) {
      return -1;
    }
  }
  auto begin = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < times; ++i) {
    if (!once()) {
      return -1;
    }
  }
  std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  return taken.count() / double(times);
}

inline void print(size_t kind, int64_t bytes, double seconds) {
  std::printf("%s %lld %.9f\n", kKinds[kind], static_cast<long long>(bytes), seconds);
  std::fflush(stdout);
}

} // namespace weft::bench

#endif // WEFT_BENCHMARKS_COLLECTIVES_SIZES_H
