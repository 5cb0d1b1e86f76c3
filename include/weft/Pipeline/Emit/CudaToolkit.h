//===- CudaToolkit.h - where the tools for CUDA devices are ---------------===//
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

/// What the compiler needs of a toolkit. Neither asks for a device.
struct CudaToolkit {
  /// The assembler, from PTX to machine code.
  std::string ptxas;
  /// Mathematical functions, as LLVM bitcode.
  std::string libdevice;
  /// What the assembler says of its version.
  std::string version;
};

/// The toolkit in the folder that the environment variable CUDA_HOME names; else in the first of
/// the build's `cuda` folder (utils/setup-cuda), that of the `ptxas` on the path, and
/// /usr/local/cuda that is whole and of CUDA 12.8 or newer. Fails where there is none, which
/// asking the assembler for its version finds out.
llvm::Expected<CudaToolkit> findCudaToolkit();

} // namespace weft

#endif // WEFT_PIPELINE_EMIT_CUDATOOLKIT_H
