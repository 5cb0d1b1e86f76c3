//===- Numerics.h - definitions of docs/Numerics.md, by the letter -------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_UNITTESTS_LOWER_NUMERICS_H
#define WEFT_UNITTESTS_LOWER_NUMERICS_H

#include <cmath>
#include <cstdint>
#include <numbers>

namespace weft::test {

inline uint64_t mix(uint64_t z) {
  z ^= z >> 30;
  z *= 0xBF58476D1CE4E5B9;
  z ^= z >> 27;
  z *= 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

inline uint64_t bits(uint64_t seed, uint64_t stream, uint64_t i) {
  return mix(mix(mix(seed) ^ stream) + i * 0x9E3779B97F4A7C15);
}

inline double uniform(uint64_t seed, uint64_t stream, uint64_t i) {
  return static_cast<double>(bits(seed, stream, i) >> 11) * 0x1p-53;
}

inline double normal(uint64_t seed, uint64_t stream, uint64_t i) {
  double u1 = static_cast<double>((bits(seed, stream, 2 * i) >> 11) + 1) * 0x1p-53;
  double u2 = uniform(seed, stream, 2 * i + 1);
  return std::sqrt(-2 * std::log(u1)) * std::cos(2 * std::numbers::pi * u2);
}

inline uint64_t dropoutStream(uint64_t step, uint64_t layer, uint64_t site) {
  return (step << 20) + (layer << 8) + site;
}

} // namespace weft::test

#endif // WEFT_UNITTESTS_LOWER_NUMERICS_H
