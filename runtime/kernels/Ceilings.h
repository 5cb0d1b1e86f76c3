//===- Ceilings.h - measures a device's peak rates ---------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_KERNELS_CEILINGS_H
#define WEFT_RT_KERNELS_CEILINGS_H

#include "backends/cuda/DriverTable.h"
#include "weft-rt/Status.h"

#include <string>

namespace weft::rt::kernels {

/// The peak rates that one measurement takes. Copies need only the driver.
enum class CeilingKind { Copies, Matmuls };

struct Ceilings {
  std::string device, libraries;
  /// Of copies: the rate within the device's memory; bytes read and bytes written both count.
  double copiedBytesPerSecond = 0;
  /// Of matmuls: the rate of a matmul of bf16 matrices, with float32 sums.
  double matmulFlopsPerSecond = 0;
  /// The rate of a matmul of E4M3 matrices; 0 if the device has no FP8 matmuls.
  double fp8MatmulFlopsPerSecond = 0;
  uint64_t copiedBytes = 0;
  int64_t matmulSize = 0;
};

/// Measures device 0, by copies of `bytes` or by matmuls with `size` rows and columns, each for
/// about `seconds`.
Result<Ceilings> measureCeilings(const cuda::DriverTable &library, CeilingKind kind, uint64_t bytes,
                                 int64_t size, double seconds);

} // namespace weft::rt::kernels

#endif // WEFT_RT_KERNELS_CEILINGS_H
