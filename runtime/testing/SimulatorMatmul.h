//===- SimulatorMatmul.h - computes a simulated device's matmul ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Matmuls run the host's code and have its bits, except for float64, for which the host has no
// matmul. Epilogues are plain loops over the matmul's float32 sums, before rounding.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_TESTING_SIMULATORMATMUL_H
#define WEFT_RT_TESTING_SIMULATORMATMUL_H

#include "execution/PreparedMatmul.h"
#include "support/BFloat16.h"

#include <vector>

namespace weft::rt::cuda {

/// The addresses of operands in the host's memory; unspecified for operands that a matmul lacks.
struct MatmulData {
  const void *a, *b;
  void *c;
  const void *addend, *bias;
  void *aux, *sums;
  const void *factorA, *factorB;
};

class SimulatorMatmul {
public:
  /// Fails if memory is missing or oneDNN fails.
  static Result<SimulatorMatmul> make(const Matmul &matmul, int64_t cores);

  Status run(const MatmulData &at);

private:
  Matmul matmul;
  /// The parts of the matmul; they give float32 if there is an epilogue.
  std::vector<std::unique_ptr<PreparedMatmul>> parts;
  /// The sums before the epilogue, in contiguous rows.
  std::vector<float> wide;
  /// FP8 operands, converted.
  std::vector<BFloat16> a, b;
};

} // namespace weft::rt::cuda

#endif // WEFT_RT_TESTING_SIMULATORMATMUL_H
