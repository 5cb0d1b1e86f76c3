//===- Libraries.h - which of CUDA's libraries a machine has ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_KERNELS_LIBRARIES_H
#define WEFT_RT_KERNELS_LIBRARIES_H

#include "backends/cuda/DriverTable.h"

#include <string>

namespace weft::rt::kernels {

/// The first call that needs each library, as programs make it: the reason why it fails, empty if
/// it succeeds.
struct MissingLibraries {
  std::string driver, matmuls, attention, collectives;
};

/// Calls the functions of `library` that need the driver, and, on device 0, the libraries of
/// matmuls, attention and collectives. Without a driver all reasons are the driver's.
MissingLibraries findMissingLibraries(const cuda::DriverTable &library);

} // namespace weft::rt::kernels

#endif // WEFT_RT_KERNELS_LIBRARIES_H
