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

/// The options of `weft run`.
struct RunOptions {
  std::string program;
  /// The number of ranks; empty for the number that the program was compiled for.
  std::string ranks;
  /// "local", "mpi", or empty for the program's default.
  std::string backend;
  /// The arguments of the program.
  std::vector<std::string> arguments;
};

/// Replaces this process with the program, or for the backend "mpi" with Open MPI's mpirun, which
/// starts the program. Returns only on failure: if the file is not executable, or Open MPI's mpirun
/// is not in the search path.
llvm::Error launch(const RunOptions &options);

} // namespace weft

#endif // WEFT_DRIVER_LAUNCH_H
