//===- Random.h - counter-based random numbers ------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The counter-based generator of docs/Numerics.md, "Random numbers": returns any
// number of any stream directly, without computing earlier ones.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_SUPPORT_RANDOM_H
#define WEFT_RT_SUPPORT_RANDOM_H

#include <cstdint>
#include <string_view>

namespace weft::rt {

/// The finalizer of splitmix64.
constexpr uint64_t mix(uint64_t z) {
  z ^= z >> 30;
  z *= 0xBF58476D1CE4E5B9;
  z ^= z >> 27;
  z *= 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

constexpr uint64_t randomBits(uint64_t seed, uint64_t stream, uint64_t index) {
  return mix(mix(mix(seed) ^ stream) + index * 0x9E3779B97F4A7C15);
}

/// FNV-1a-64, which turns a name into a stream.
constexpr uint64_t streamOf(std::string_view name) {
  uint64_t hash = 0xCBF29CE484222325;
  for (char byte : name) {
    hash = (hash ^ uint8_t(byte)) * 0x100000001B3;
  }
  return hash;
}

} // namespace weft::rt

#endif // WEFT_RT_SUPPORT_RANDOM_H
