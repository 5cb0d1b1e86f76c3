//===- CudaToolkit.h - finds the CUDA toolkit -----------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PIPELINE_EMIT_CUDATOOLKIT_H
#define WEFT_PIPELINE_EMIT_CUDATOOLKIT_H

#include "llvm/Support/Error.h"

#include <string>

namespace weft {

/// The files of a CUDA toolkit that the compiler uses. No device is needed for them.
struct CudaToolkit {
  /// Path of the assembler, which turns PTX into machine code.
  std::string ptxas;
  /// Path of the mathematical functions, in LLVM bitcode.
  std::string libdevice;
  /// The assembler's output about its version.
  std::string version;
};

/// Returns the toolkit in the folder that the environment variable CUDA_HOME names. If CUDA_HOME
/// is not set, returns the first complete one, of CUDA 12.8 or newer, among the build's `cuda`
/// folder (utils/setup-cuda), that of the `ptxas` on the path, and /usr/local/cuda. Runs the
/// assembler to get its version. Fails if there is no such toolkit.
llvm::Expected<CudaToolkit> findCudaToolkit();

} // namespace weft

#endif // WEFT_PIPELINE_EMIT_CUDATOOLKIT_H
