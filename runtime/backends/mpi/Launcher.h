//===- Launcher.h - who has started the processes -------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_MPI_LAUNCHER_H
#define WEFT_RT_BACKENDS_MPI_LAUNCHER_H

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace weft::rt::mpi {

/// Something that starts one program in several processes, and what it says of this one.
struct Launcher {
  /// "mpirun", "srun", "mpiexec of MPICH".
  std::string name;
  int64_t rank = 0, size = 1;
  /// This process's number among those on its machine, and the variable that says it.
  std::optional<int64_t> localRank;
  std::string localRankName;
};

/// Reads a variable of the environment; null if there is none.
using Environment = std::function<const char *(const char *name)>;

/// By the variables that launchers set. None, if the program was started by itself; so too in a
/// job of Slurm outside of srun, and in a step of srun with one task, as an interactive shell is.
std::optional<Launcher> findLauncher(const Environment &environment);
std::optional<Launcher> findLauncher();

} // namespace weft::rt::mpi

#endif // WEFT_RT_BACKENDS_MPI_LAUNCHER_H
