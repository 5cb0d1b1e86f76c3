//===- Launch.h - starts a compiled program ---------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DRIVER_LAUNCH_H
#define WEFT_DRIVER_LAUNCH_H

#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace weft {

/// What `weft run` was asked for.
struct RunOptions {
  std::string program;
  /// A number; empty for as many as the program was compiled for.
  std::string ranks;
  /// "local", "mpi", or empty for what the program chooses itself.
  std::string backend;
  /// Of the program.
  std::vector<std::string> arguments;
};

/// Replaces this process by the program, by way of Open MPI's mpirun where the backend is "mpi".
/// Returns only if that fails: where the program is no executable, or there is no mpirun of Open
/// MPI.
llvm::Error launch(const RunOptions &options);

} // namespace weft

#endif // WEFT_DRIVER_LAUNCH_H
