//===- Ones.h - operands for trials of matmuls -----------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Trials multiply ones: their sums are known exactly, and unlike zeros they take as long as other
// numbers.
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

/// Enqueues setting all numbers of `type` in `bytes` bytes to 1. REQUIRES: bytes % 8 == 0.
inline DriverTable::Result fillWithOnes(DriverTable::Address at, uint64_t bytes, ElementType type,
                                        CUstream stream) {
  // The 32 bits to repeat: the upper half of a float64, whose lower half is 0, or several numbers.
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

/// The scale factors of FP8 operands in trials. A result that lacks one factor or both differs.
inline constexpr float kTrialFactorA = 4, kTrialFactorB = 0.5;

/// Enqueues setting the f32 at `at` to `factor`.
inline DriverTable::Result fillWithFactor(DriverTable::Address at, float factor, CUstream stream) {
  auto bits = std::bit_cast<uint32_t>(factor);
  return resultOf(driver().fillWords(at, sizeof bits, bits, 1, 1, stream),
                  "cuMemsetD2D32Async of a factor");
}

/// Returns true if `value` is a correct element of matmul `p` of ones: k, times the factors for
/// FP8, plus addend and bias.
inline bool isOfOnes(const Matmul &p, double value) {
  double factor = p.isFp8() ? double(kTrialFactorA * kTrialFactorB) : 1;
  double expected = factor * double(p.k) * double(p.isSum() ? p.batch : 1) +
                    double(p.epilogue.hasAddend) + double(p.epilogue.hasBias);
  // Sums below 2^24 are exact in float32; bf16 has 8 bits of precision.
  double allowed = p.resultType() == ElementType::BF16 ? expected / 256
                   : expected < (1 << 24)              ? 0
                                                       : expected / 1024;
  return std::abs(value - expected) <= allowed;
}

/// Returns true if `readNumber` supports the type.
inline bool isReadable(ElementType type) {
  return type == ElementType::F64 || type == ElementType::F32 || type == ElementType::BF16;
}

/// Returns the number of `type` in the lowest bits of `bits`.
inline double readNumber(uint64_t bits, ElementType type) {
  return type == ElementType::F64   ? std::bit_cast<double>(bits)
         : type == ElementType::F32 ? std::bit_cast<float>(uint32_t(bits))
                                    : std::bit_cast<float>(uint32_t(bits) << 16);
}

} // namespace weft::rt::cuda

#endif // WEFT_RT_BACKENDS_CUDA_ONES_H
