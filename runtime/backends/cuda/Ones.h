//===- Ones.h - numbers to try matmuls on ----------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A sum of ones is known exactly, and unlike zeros they make the device work.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_CUDA_ONES_H
#define WEFT_RT_BACKENDS_CUDA_ONES_H

#include "backends/cuda/Calls.h"
#include "support/Float8.h"
#include "weft-rt/Program.h"

#include <bit>
#include <cmath>

namespace weft::rt::cuda {

/// Enqueues that all numbers of `type` in `bytes` bytes, a multiple of 8, are 1.
inline DriverTable::Result fillWithOnes(DriverTable::Address at, uint64_t bytes, ElementType type,
                                        CUstream stream) {
  // Of float64 the upper half, as the lower one is zero; of fewer bits there are several in a word.
  uint32_t one = type == ElementType::F64    ? 0x3ff00000
                 : type == ElementType::F32  ? 0x3f800000
                 : type == ElementType::BF16 ? 0x3f803f80
                 : isFloat8(type)            ? oneF8(type) * 0x01010101u
                                             : 0x3c003c00;
  uint64_t pitch = type == ElementType::F64 ? 8 : 4;
  DriverTable::Result failed =
      resultOf(driver().fill(at, 0, bytes, stream), "cuMemsetD8Async of ", bytesText(bytes));
  return failed ? failed
                : resultOf(driver().fillWords(at + pitch - 4, pitch, one, 1, bytes / pitch, stream),
                           "cuMemsetD2D32Async of ", bytesText(bytes));
}

/// What FP8 operands are multiplied by: the result without one of them, or both, is
/// another.
inline constexpr float kTrialFactorA = 4, kTrialFactorB = 0.5;

/// Enqueues that the number of f32 there is `factor`.
inline DriverTable::Result fillWithFactor(DriverTable::Address at, float factor, CUstream stream) {
  auto bits = std::bit_cast<uint32_t>(factor);
  return resultOf(driver().fillWords(at, sizeof bits, bits, 1, 1, stream),
                  "cuMemsetD2D32Async of a factor");
}

/// Whether an element of a matmul may be `value`: of ones it is k, of bytes times the factors, and
/// what is added.
inline bool isOfOnes(const Matmul &p, double value) {
  double factor = p.isFp8() ? double(kTrialFactorA * kTrialFactorB) : 1;
  double expected = factor * double(p.k) * double(p.isSum() ? p.batch : 1) +
                    double(p.epilogue.hasAddend) + double(p.epilogue.hasBias);
  // Float32 holds what it adds up here; half as much as a number of 8 bits is off.
  double allowed = p.resultType() == ElementType::BF16 ? expected / 256
                   : expected < (1 << 24)              ? 0
                                                       : expected / 1024;
  return std::abs(value - expected) <= allowed;
}

/// Whether `readNumber` knows the type.
inline bool isReadable(ElementType type) {
  return type == ElementType::F64 || type == ElementType::F32 || type == ElementType::BF16;
}

/// The number whose bits are the lowest of `bits`.
inline double readNumber(uint64_t bits, ElementType type) {
  return type == ElementType::F64   ? std::bit_cast<double>(bits)
         : type == ElementType::F32 ? std::bit_cast<float>(uint32_t(bits))
                                    : std::bit_cast<float>(uint32_t(bits) << 16);
}

} // namespace weft::rt::cuda

#endif // WEFT_RT_BACKENDS_CUDA_ONES_H
