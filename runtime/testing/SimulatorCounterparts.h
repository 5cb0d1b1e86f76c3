//===- SimulatorCounterparts.h - what a device's kernels do, on the host -===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_TESTING_SIMULATORCOUNTERPARTS_H
#define WEFT_RT_TESTING_SIMULATORCOUNTERPARTS_H

#include "weft-rt/Program.h"

#include <map>

namespace weft::rt::cuda {

/// A phase of a kernel as an entry of a module: it takes the address of the rank's coordinates,
/// then those of its operands, then its immediates.
struct Counterpart {
  struct Operand {
    uint64_t bytes = 0;
    Access access = Access::Read;
  };

  KernelFunction function = nullptr;
  int64_t phase = 0;
  /// Of the host's phases that it does, from `phase` on.
  std::vector<int64_t> iterations = {};
  uint64_t coordinateBytes = 0;
  std::vector<Operand> operands = {};
  size_t immediates = 0;
  /// How many threads a block has; 0 for any number.
  uint32_t threads = 0;

  size_t arguments() const { return 1 + operands.size() + immediates; }
};

/// All entries that modules have, and how matmuls are cut, which decides their bits.
struct Counterparts {
  std::map<std::string, Counterpart> entries;
  int64_t cores = 1;

  Counterparts() = default;
  /// Those of kernels that `program` runs; `kernels[i]` is the code of its kernel i. "NAME_phase_P"
  /// is phase P of the kernel NAME. Where a device has other phases than the host, the last one
  /// does what is left, and those beyond the host's nothing.
  Counterparts(const Program &program, const KernelCode *kernels);
};

} // namespace weft::rt::cuda

#endif // WEFT_RT_TESTING_SIMULATORCOUNTERPARTS_H
