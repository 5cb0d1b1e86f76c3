//===- SimulatorCounterparts.h - the host's code of a device's kernels ---===//
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

/// The host's code of an entry of a module, which is one phase of a kernel. The entry takes the
/// address of the rank's coordinates, the addresses of its operands, then its immediates.
struct Counterpart {
  struct Operand {
    uint64_t bytes = 0;
    Access access = Access::Read;
  };

  KernelFunction function = nullptr;
  int64_t phase = 0;
  /// The iterations of each of the host's phases that it runs, from `phase` on.
  std::vector<int64_t> iterations = {};
  uint64_t coordinateBytes = 0;
  std::vector<Operand> operands = {};
  size_t immediates = 0;
  /// The threads of a block; 0 for any number.
  uint32_t threads = 0;

  size_t arguments() const { return 1 + operands.size() + immediates; }
};

/// All entries of modules, and the number of cores by which matmuls are cut, which decides their
/// bits.
struct Counterparts {
  std::map<std::string, Counterpart> entries;
  int64_t cores = 1;

  Counterparts() = default;
  /// Adds the entries of the kernels that `programs` run; `kernels[i]` is the code of their kernel
  /// i. "NAME_phase_P" is phase P of the kernel NAME. Phases without iterations are not launched,
  /// so each of the device's others runs the host's next phase. If a device has fewer than the
  /// host, its last one runs all remaining ones; if it has more, the surplus ones do nothing.
  Counterparts(std::span<const Program> programs, const KernelCode *kernels);

private:
  void add(const Program &program, const KernelCode *kernels);
};

} // namespace weft::rt::cuda

#endif // WEFT_RT_TESTING_SIMULATORCOUNTERPARTS_H
