//===- SimulatorMatmul.h - computes a matmul as a device would -----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Matmuls have the host's bits, as they are its code, but for those of float64, which the
// host has none for. Epilogues are plain loops: on what the matmul has summed in float32, before
// it is rounded.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_TESTING_SIMULATORMATMUL_H
#define WEFT_RT_TESTING_SIMULATORMATMUL_H

#include "execution/PreparedMatmul.h"
#include "support/BFloat16.h"

#include <vector>

namespace weft::rt::cuda {

/// Where operands are in the host's memory; unspecified for those that a matmul has not.
struct MatmulData {
  const void *a, *b;
  void *c;
  const void *addend, *bias;
  void *aux, *sums;
  const void *factorA, *factorB;
};

class SimulatorMatmul {
public:
  SimulatorMatmul() = default;
  /// Says what is wrong in `error` where there is no memory or oneDNN fails.
  SimulatorMatmul(const Matmul &matmul, int64_t cores, std::string &error);

  bool run(const MatmulData &at, std::string &error);

private:
  Matmul matmul;
  /// In float32 where there is an epilogue.
  std::vector<std::unique_ptr<PreparedMatmul>> parts;
  /// Before the epilogue, its rows without distance.
  std::vector<float> wide;
  /// What is multiplied, of FP8 matrices.
  std::vector<BFloat16> a, b;
};

} // namespace weft::rt::cuda

#endif // WEFT_RT_TESTING_SIMULATORMATMUL_H
