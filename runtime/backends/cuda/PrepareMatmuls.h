//===- PrepareMatmuls.h - the same ways for matmuls on all ranks ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How a matmul is computed decides its last bits, and ranks that hold the same parameters have to
// keep the same. So of each kind of device one rank chooses, by a file of earlier choices or by
// trying, and tells the others, who take over what it says.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_CUDA_PREPAREMATMULS_H
#define WEFT_RT_BACKENDS_CUDA_PREPAREMATMULS_H

#include "backends/cuda/DriverTable.h"
#include "weft-rt/Backend.h"
#include "weft-rt/Program.h"

#include <vector>

namespace weft::rt::cuda {

struct MatmulSetup {
  const Program &program;
  const DriverTable &library;
  DriverTable::Handle device;
  const DeviceFacts &facts;
  /// The number of the device, for what is said of failures.
  int64_t number, rank;
  Communicator &communicator;
  /// Of earlier choices; empty for none.
  const std::string &cacheFile;
};

/// Prepares all matmuls of the program, in `matmuls`, in their order; 0 for the one that failed.
/// To be called by all ranks. On failure tells the communicator.
bool prepareMatmuls(const MatmulSetup &setup, std::vector<DriverTable::Handle> &matmuls);

/// Where the operands of an instruction are, by their order in the program.
MatmulPlaces placesOf(const Matmul &matmul, void *const *operands);

} // namespace weft::rt::cuda

#endif // WEFT_RT_BACKENDS_CUDA_PREPAREMATMULS_H
