//===- PrepareMatmuls.h - one algorithm for each matmul on all ranks ------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A matmul's algorithm decides its last bits, and ranks that hold the same parameters must keep
// the same bits. So for each kind of device one rank chooses the algorithms, from a file of earlier
// choices or by measuring, and sends them to the others.
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
  /// The numbers of device and rank, for errors.
  int64_t number, rank;
  Communicator &communicator;
  /// The file of earlier choices; empty for none.
  const std::string &cacheFile;
};

/// Prepares all matmuls of the program and appends their handles to `matmuls` in order, 0 for one
/// that failed. All ranks call it. On failure fails the communicator and returns false.
bool prepareMatmuls(const MatmulSetup &setup, std::vector<DriverTable::Handle> &matmuls);

/// Returns the addresses of a matmul's operands from those of its instruction.
MatmulPlaces placesOf(const Matmul &matmul, void *const *operands);

} // namespace weft::rt::cuda

#endif // WEFT_RT_BACKENDS_CUDA_PREPAREMATMULS_H
